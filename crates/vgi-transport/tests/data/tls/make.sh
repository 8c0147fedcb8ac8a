#!/bin/sh
# Makes the certificates that the tests of TLS use: an authority that nobody knows, and what it signed for `localhost`. They are valid for
# a hundred years and guard nothing.
set -eu
cd "$(dirname "$0")"
openssl ecparam -name prime256v1 -genkey -noout -out authority.key
openssl req -x509 -new -key authority.key -sha256 -days 36500 -subj "/CN=vgi test authority" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" -out authority.pem
openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out server.key
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n' > extensions
openssl req -new -key server.key -subj "/CN=localhost" |
    openssl x509 -req -CA authority.pem -CAkey authority.key -CAcreateserial -sha256 -days 36500 -extfile extensions -out server.pem
rm -f authority.key authority.srl extensions
