#!/bin/sh
# From a CSV file to a served model: sh examples/serve.sh [PORT]
set -e
folder=$(mktemp -d)
for i in $(seq 400); do
  [ $((i % 3)) -eq 0 ] && echo "yes,red,$((i % 9))" || echo "no,blue,$((i % 7))"
done | sed '1i bought,colour,price' > "$folder/visits.csv"
thresher train "$folder/visits.csv" --label bought --multiclass -m "$folder/visits.thresher" --quiet
thresher serve "$folder/visits.thresher" --port "${1:-8080}" --quiet & server=$!
trap 'kill $server; wait $server; rm -r "$folder"' EXIT
ask="curl --silent --retry 40 --retry-delay 1 --retry-connrefused http://127.0.0.1:${1:-8080}"
$ask/healthz; echo
$ask/predict -H 'Content-Type: application/json' \
  -d '{"rows": [{"colour": "red", "price": 3}], "probability": true}'; echo
$ask/explain -H 'Content-Type: application/json' -d '[{"colour": "red", "price": 3}]'; echo
$ask/metrics | grep thresher_rows_total
