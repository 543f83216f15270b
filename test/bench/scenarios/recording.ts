/**
 * Scenarios' way to the recorder: run a real git command against a side and get what it sent.
 *
 * Must stay true: credentials go with the first request, so that no recorded operation holds a 401.
 */
import { git } from '../git.ts';
import { type RecordedExchange, startRecorder } from '../recorder.ts';
import { basicAuthorization, type Repository, type Side } from '../sides/side.ts';

/** Global options of git that make it send its credentials at once, and as a first-time client would. */
export function clientOptions(side: Side): readonly string[] {
  return ['-c', `http.extraHeader=Authorization: ${basicAuthorization(side)}`];
}

export function urlOf(port: number, repository: Repository): string {
  return `http://127.0.0.1:${port}${repository.path}`;
}

/** Runs `git <command>` with the repository's URL as the recorder shows it, and returns the requests it sent. */
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
