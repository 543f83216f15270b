/**
 * A program that a test kills: it runs a process that starts another, and prints the pids of both and of the helper
 * process.
 */
import { createProcessRunner } from '../../adapters/git/process/process-runner.ts';

const runner = createProcessRunner({
  limits: { memoryBytesMax: 2 ** 30, fileBytesMax: 2 ** 20, cpuSecondsMax: 10, openFilesMax: 256 },
  processesMax: 1,
  processesPerKeyMax: 1,
  directory: process.argv[2] ?? '/nonexistent',
  onHelperLine: (line) => console.error(line),
});
const running = await runner.run({
  file: '/bin/sh',
  args: ['-c', 'sleep 100 & echo $$ $! $PPID; wait'],
  cwd: '/',
  env: { PATH: '/usr/bin:/bin' },
  stdin: 'none',
  stdout: 'stream',
  key: 'test',
  wallMsMax: 100_000,
});
running.stdout?.pipe(process.stdout);
