/**
 * Runs a real git command against a side through the recorder, and returns what git sent.
 *
 * Invariants: git sends its credentials with the first request, so that no recorded operation has a 401.
 */
import { git } from '../git.ts';
import { type RecordedExchange, startRecorder } from '../recorder.ts';
import { basicAuthorization, type Repository, type Side } from '../sides/side.ts';

/** Global options of git that make it send its credentials immediately. */
export function clientOptions(side: Side): readonly string[] {
  return ['-c', `http.extraHeader=Authorization: ${basicAuthorization(side)}`];
}

export function urlOf(port: number, repository: Repository): string {
  return `http://127.0.0.1:${port}${repository.path}`;
}

/** Runs `git <command>` with a URL that leads through the recorder, and returns the requests that git sent. */
export async function record(
  side: Side,
  repository: Repository,
  cwd: string,
  command: (url: string) => readonly string[],
): Promise<readonly RecordedExchange[]> {
  const recorder = await startRecorder(side.port);
  try {
    await git([...clientOptions(side), ...command(urlOf(recorder.port, repository))], { cwd });
    return recorder.take();
  } finally {
    await recorder.close();
  }
}
