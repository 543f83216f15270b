/** Runs the protocol server as a process beside the Strata servers of a scenario. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { cleanUp, type Ending } from '../cleanup.ts';
import { serverProgram, startServerProgram } from './server-program.ts';

export interface ProtocolServerProcess {
  /** The value for STRATA_EVENTSTORE_URL. */
  readonly address: string;
  readonly port: number;
  /** Stops the process, whose system goes on accepting connections and data. */
  freeze(): void;
  /** Lets it go on, and do what it was sent since. */
  thaw(): void;
  stop(): Promise<void>;
}

export async function startProtocolServerProcess(): Promise<ProtocolServerProcess> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'main.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [address] = (await once(createInterface(child.stdout), 'line')) as [string];
  const thaw = (): void => void child.kill('SIGCONT');
  return {
    address,
    port: Number(new URL(address).port),
    freeze: () => void child.kill('SIGSTOP'),
    thaw,
    stop: async () => {
      thaw();
      child.stdin.end();
      await exited;
    },
  };
}

/**
 * Starts a protocol server until the test ends, or the real server of STRATA_EVENTSTORE_SERVER; returns the settings of
 * a Strata server that uses it as its log.
 */
export async function eventStoreDbSettings(
  context: Ending,
): Promise<{ readonly STRATA_EVENT_STORE: string; readonly STRATA_EVENTSTORE_URL: string }> {
  const program = serverProgram();
  const address = program === null ? await startProtocolServer(context) : await startServerProgram(context, program);
  return { STRATA_EVENT_STORE: 'eventstoredb', STRATA_EVENTSTORE_URL: address };
}

async function startProtocolServer(context: Ending): Promise<string> {
  const { address, stop } = await startProtocolServerProcess();
  cleanUp(context, stop);
  return address;
}
