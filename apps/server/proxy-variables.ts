/**
 * The variables from which gRPC takes a proxy (@grpc/grpc-js, http_proxy.ts), as machines have them whose programs
 * reach the internet through one.
 *
 * Invariants: no connection of this process depends on them. EventStoreDB and Temporal are where the settings say, and
 * EventStoreDB's client has no option that says so to gRPC.
 */
const PROXY_VARIABLES = ['grpc_proxy', 'https_proxy', 'http_proxy'] as const;

/** Call it before the first connection is made. */
export function dropProxyVariables(environment: Record<string, string | undefined>): void {
  for (const name of PROXY_VARIABLES) delete environment[name];
}
