/**
 * The protocol server as a process, for several Strata servers on one log: `node main.ts [port]` prints the address for
 * STRATA_EVENTSTORE_URL, and exits when its standard input ends. Its log is in memory only.
 */
import { startProtocolServer } from './protocol-server.ts';

const [port = '0'] = process.argv.slice(2);
const server = await startProtocolServer({ port: Number(port) });
process.stdin.resume().once('end', () => process.exit(0));
console.log(server.url);
