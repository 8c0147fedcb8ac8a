#include "filter_pushdown.hpp"

#include "exception.hpp"
#include "table_function.hpp"

#include "duckdb/planner/expression/bound_between_expression.hpp"
#include "duckdb/planner/expression/bound_columnref_expression.hpp"
#include "duckdb/planner/expression/bound_comparison_expression.hpp"
#include "duckdb/planner/expression/bound_conjunction_expression.hpp"
#include "duckdb/planner/expression/bound_constant_expression.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"
#include "duckdb/planner/expression/bound_operator_expression.hpp"
#include "duckdb/planner/operator/logical_get.hpp"

namespace vgi {

using duckdb::Expression;
using duckdb::ExpressionClass;
using duckdb::ExpressionType;

namespace {

//! Hands an expression to the builder node by node, children first; false when a node has no name in the protocol.
class Writer {
public:
    Writer(duckdb::ClientContext &context_p, const duckdb::LogicalGet &get_p, FilterBuilder &builder_p)
        : context(context_p), get(get_p), builder(builder_p) {}

    bool Write(const Expression &expression) {
        switch (expression.GetExpressionClass()) {
        case ExpressionClass::BOUND_COLUMN_REF:
            return WriteColumn(expression.Cast<duckdb::BoundColumnRefExpression>());
        case ExpressionClass::BOUND_CONSTANT:
            return builder.add_constant(context, expression.Cast<duckdb::BoundConstantExpression>().GetValue());
        case ExpressionClass::BOUND_CONJUNCTION: {
            auto &children = expression.Cast<duckdb::BoundConjunctionExpression>().GetChildren();
            const bool all = expression.GetExpressionType() == ExpressionType::CONJUNCTION_AND;
            return WriteAll(children) && builder.conjunction(all, children.size());
        }
        case ExpressionClass::BOUND_OPERATOR:
            return WriteOperator(expression.GetExpressionType(),
                                 expression.Cast<duckdb::BoundOperatorExpression>().GetChildren());
        case ExpressionClass::BOUND_FUNCTION:
            return WriteFunction(expression.Cast<duckdb::BoundFunctionExpression>());
        default:
            return false;
        }
    }

private:
    bool WriteAll(const duckdb::vector<duckdb::unique_ptr<Expression>> &children) {
        for (auto &child : children) {
            if (!Write(*child)) {
                return false;
            }
        }
        return true;
    }

    bool WriteColumn(const duckdb::BoundColumnRefExpression &reference) {
        auto &binding = reference.Binding();
        auto &columns = get.GetColumnIds();
        if (binding.table_index != get.table_index || binding.column_index >= columns.size()) {
            return false;
        }
        auto &column = columns[binding.column_index];
        return column.HasPrimaryIndex() && !column.IsVirtualColumn() && !column.HasChildren() &&
               builder.column(column.GetPrimaryIndex());
    }

    bool WriteOperator(ExpressionType type, const duckdb::vector<duckdb::unique_ptr<Expression>> &children) {
        if (!WriteAll(children)) {
            return false;
        }
        switch (type) {
        case ExpressionType::OPERATOR_NOT:
            return builder.negation();
        case ExpressionType::OPERATOR_IS_NULL:
            return builder.null_test(false);
        case ExpressionType::OPERATOR_IS_NOT_NULL:
            return builder.null_test(true);
        case ExpressionType::COMPARE_IN:
            return builder.among(children.size() - 1, false);
        case ExpressionType::COMPARE_NOT_IN:
            return builder.among(children.size() - 1, true);
        default:
            return false;
        }
    }

    bool WriteFunction(const duckdb::BoundFunctionExpression &function) {
        const auto type = function.GetExpressionType();
        if (type == ExpressionType::COMPARE_BETWEEN && duckdb::BoundBetweenExpression::HasValidBindData(function)) {
            using Between = duckdb::BoundBetweenExpression;
            return WriteComparison(Between::LowerComparisonType(function), Between::Input(function),
                                   Between::LowerBound(function)) &&
                   WriteComparison(Between::UpperComparisonType(function), Between::Input(function),
                                   Between::UpperBound(function)) &&
                   builder.conjunction(true, 2);
        }
        if (duckdb::BoundComparisonExpression::IsComparison(function)) {
            return WriteComparison(type, duckdb::BoundComparisonExpression::Left(function),
                                   duckdb::BoundComparisonExpression::Right(function));
        }
        auto &children = function.GetChildren();
        if (type != ExpressionType::BOUND_FUNCTION) {
            return !children.empty() && WriteOperator(type, children);
        }
        const auto name = TextTest(function.Function().GetName().GetIdentifierName());
        return !name.empty() && children.size() == 2 && WriteAll(children) && builder.text_test(name);
    }

    bool WriteComparison(ExpressionType type, const Expression &left, const Expression &right) {
        // DuckDB compares these by the collation, which the protocol does not know
        const bool collated = left.GetReturnType().id() == duckdb::LogicalTypeId::VARCHAR &&
                              !duckdb::StringType::GetCollation(left.GetReturnType()).empty();
        return !collated && Write(left) && Write(right) && builder.comparison(duckdb::ExpressionTypeToOperator(type));
    }

    static std::string TextTest(const std::string &name) {
        if (name == "prefix" || name == "starts_with") {
            return "starts_with";
        }
        if (name == "suffix" || name == "ends_with") {
            return "ends_with";
        }
        return name == "contains" ? name : std::string();
    }

    duckdb::ClientContext &context;
    const duckdb::LogicalGet &get;
    FilterBuilder &builder;
};

} // namespace

void PushFilters(duckdb::ClientContext &context, duckdb::LogicalGet &get, duckdb::FunctionData *bind_data,
                 duckdb::vector<duckdb::unique_ptr<Expression>> &filters) {
    auto &data = bind_data->Cast<CallData>();
    if (!data.call->takes_filters()) {
        return;
    }
    auto builder = data.call->filter_builder();
    Writer writer(context, get, *builder);
    duckdb::vector<bool> accepted;
    for (auto &filter : filters) {
        const bool written = !filter->IsVolatile() && writer.Write(*filter);
        accepted.push_back(builder->finish_predicate(written, filter->ToString()));
    }
    if (!builder->fits()) {
        return;
    }
    data.call = builder->filtered();
    if (builder->exact()) {
        for (duckdb::idx_t i = filters.size(); i-- > 0;) {
            if (accepted[i]) {
                filters.erase_at(i);
            }
        }
    }
}

} // namespace vgi
