/** The protocol server beside the servers of a scenario, and the settings that lead there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { cleanUp, type Ending } from '../cleanup.ts';

/** Starts one, which ends with the test, and answers the settings of a server whose log it is. */
export async function protocolServerSettings(
  context: Ending,
): Promise<{ readonly STRATA_EVENT_STORE: string; readonly STRATA_EVENTSTORE_URL: string }> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'main.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  cleanUp(context, async () => {
    child.stdin.end();
    await exited;
  });
  const [address] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { STRATA_EVENT_STORE: 'eventstoredb', STRATA_EVENTSTORE_URL: address };
}
