/**
 * A program that runs only an embedded PostgreSQL, as a process of its own that tests can kill.
 *
 * `node embedded-server.ts <data directory>` prints one line of JSON, `{"connectionString", "pid"}` or `{"code",
 * "message"}`, and stops when its input ends. It ignores SIGINT, as a server that is draining does. The tests do not
 * cut the power, so PostgreSQL runs without fsync.
 */
import { EmbeddedPostgresError } from '../../adapters/embedded-postgres/error.ts';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { keepLog } from './log.ts';

const [dataDir = ''] = process.argv.slice(2);
process.on('SIGINT', () => {});
try {
  const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings: { fsync: 'off' } });
  process.stdin.resume().once('end', () => void embedded.stop().then(() => process.exit(0)));
  console.log(JSON.stringify({ connectionString: embedded.ownerConnectionString, pid: embedded.pid() }));
} catch (error) {
  if (!(error instanceof EmbeddedPostgresError)) throw error;
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
