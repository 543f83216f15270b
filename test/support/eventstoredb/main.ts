/**
 * The protocol server as a process of its own, for servers that share a log: `node main.ts [port]` prints its address
 * for STRATA_EVENTSTORE_URL and ends with its input. It is a stand-in; its log is gone with it.
 */
import { startProtocolServer } from './protocol-server.ts';

const [port = '0'] = process.argv.slice(2);
const server = await startProtocolServer({ port: Number(port) });
process.stdin.resume().once('end', () => process.exit(0));
console.log(server.url);
