#!/usr/bin/env bash
# Installs the programs that the suites on Temporal need into the folder of tools (.ci/tools-folder.sh):
#   temporal              the CLI with its development server, built from source: needs Go 1.23 or newer
#   temporal-test-server  the server whose clock tests move: needs a JDK and Maven
# Leaves a tool alone that is installed in the version below. Takes no input, prints one line for each tool, and fails if
# it could not install one of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/tools-folder.sh

cli_version=1.5.1
test_server_version=1.38.0

# A tool built this way does not know its version, so the file's name holds it.
cli=$tools/temporal-$cli_version
cli_is_there() { [ -x "$cli" ] && [ "$(readlink "$tools/temporal")" = "$cli" ]; }

# Uses the installed Go: a newer toolchain would have to be downloaded.
make_cli() {
  GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0 GOBIN="$work" \
    go install "github.com/temporalio/cli/cmd/temporal@v$cli_version" &&
    mv "$work/temporal" "$cli" && ln -sf "$cli" "$tools/temporal"
}

# One folder for each version of Temporal and of the source below.
test_server=$tools/temporal-test-server-$test_server_version-$(cksum <test/support/temporal/TestServer.java | cut -d ' ' -f 1)
test_server_is_there() {
  [ -f "$test_server/TestServer.class" ] && grep -qsF "'$test_server:" "$tools/temporal-test-server"
}

make_test_server() {
  local made=$work/test-server
  mkdir "$made" &&
    cat >"$made/pom.xml" <<POM &&
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>strata</groupId>
  <artifactId>test-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>io.temporal</groupId>
      <artifactId>temporal-test-server</artifactId>
      <version>$test_server_version</version>
    </dependency>
  </dependencies>
</project>
POM
    mvn --batch-mode --quiet --file "$made/pom.xml" dependency:copy-dependencies \
      -DincludeScope=runtime "-DoutputDirectory=$made/lib" &&
    javac -cp "$made/lib/*" -d "$made" test/support/temporal/TestServer.java &&
    rm -rf "$test_server" && mv "$made" "$test_server" &&
    cat >"$work/wrapper" <<WRAPPER &&
#!/bin/sh
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -cp '$test_server:$test_server/lib/*' TestServer "\$@"
WRAPPER
    chmod +x "$work/wrapper" && mv "$work/wrapper" "$tools/temporal-test-server"
}

if cli_is_there; then say "temporal $cli_version" "is in $tools"; else make_tool "temporal $cli_version" make_cli; fi
if test_server_is_there; then
  say "temporal-test-server $test_server_version" "is in $tools"
else
  make_tool "temporal-test-server $test_server_version" make_test_server
fi
exit "$failed"
