/** Processes that the helper runs: how they end, their limits, and that none outlives its caller. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { COLLECTED_OUTPUT_BYTES_MAX } from '../../../../adapters/git/process/process-protocol.ts';
import {
  createProcessRunner,
  type ProcessRunner,
  type ProcessRunnerOptions,
  type RunOptions,
} from '../../../../adapters/git/process/process-runner.ts';
import { ReaderTooSlow } from '../../../../core/kernel/reader-too-slow.ts';
import { NO_PROC } from '../../../support/git-below.ts';
import { eventually, isAlive } from '../../../support/processes.ts';
import { skippedFor } from '../../../support/skipped.ts';

const MIB = 1024 * 1024;
const LIMITS = { memoryBytesMax: 1024 * MIB, fileBytesMax: 2 * MIB, cpuSecondsMax: 1, openFilesMax: 256 };

/** Counts the sockets that this process has open. */
function openSockets(): number {
  const isSocket = (file: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`).startsWith('socket:');
    } catch {
      // The listing itself had it open.
      return false;
    }
  };
  return readdirSync('/proc/self/fd').filter(isSocket).length;
}

describe('the process runner', () => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-runner-'));
  let runner: ProcessRunner;
  beforeAll(() => {
    runner = newRunner(folder);
  });
  afterAll(async () => {
    await runner.close();
    rmSync(folder, { recursive: true });
  });
  const sh = (script: string, options: Partial<RunOptions> = {}) => runner.run({ ...shell(script), ...options });

  test('returns the output, the errors and the status of a process', async () => {
    const end = await (await sh('echo out; echo err >&2; exit 3')).ended;
    assert.deepEqual(end, { code: 3, signal: null, killed: 'no', stderr: 'err\n', stdout: 'out\n', outgrown: false });
  });

  test('gives a process exactly the requested environment and folder', async () => {
    const end = await (await sh('pwd; env | sort', { cwd: '/usr', env: { A: 'ä=b' } })).ended;
    assert.deepEqual(
      end.stdout?.split('\n').filter((line) => !line.startsWith('_=')),
      ['/usr', 'A=ä=b', 'PWD=/usr', ''],
    );
  });

  test('lets a process give way to the server as far as it is told', skippedFor(NO_PROC), async () => {
    const nice = async (niceness?: number) => {
      const end = await (await sh('sleep 0.2; nice', niceness === undefined ? {} : { niceness })).ended;
      return Number(end.stdout);
    };
    assert.equal(await nice(), getPriority());
    assert.equal(await nice(7), Math.min(getPriority() + 7, 19));
  });

  test('has git ended by the system before the server when memory is short', skippedFor(NO_PROC), async () => {
    const { stdout } = await (await sh('cat /proc/self/oom_score_adj')).ended;
    assert.equal(stdout, '500\n');
    assert.notEqual(readFileSync('/proc/self/oom_score_adj', 'latin1'), '500\n');
  });

  test(
    'kills a process that takes more memory than it was admitted with, and says so',
    skippedFor(NO_PROC),
    async () => {
      const memoryBytesMax = 30 * MIB;
      // dd reads a whole block into its memory.
      const end = await (await sh('exec dd if=/dev/zero of=/dev/null bs=800000000 count=20', { memoryBytesMax })).ended;
      assert.deepEqual([end.outgrown, end.signal, end.killed], [true, 'SIGKILL', 'no']);
      const others = await (await sh('sleep 0.1', { memoryBytesMax })).ended;
      assert.deepEqual([others.outgrown, others.code], [false, 0]);
    },
  );

  test(
    'ends a process that takes more processor time than it may, which may grow while it runs',
    skippedFor(NO_PROC),
    async (context) => {
      const other = mkdtempSync(join(tmpdir(), 'strata-runner-'));
      // The system's own limit is far away: on a quiet machine, four looks at it are a second of its time.
      const patient = newRunner(other, { limits: { ...LIMITS, cpuSecondsMax: 60 } });
      context.onTestFinished(async () => {
        await patient.close();
        rmSync(other, { recursive: true });
      });
      const busy = 'exec sh -c "while :; do :; done"';
      const end = await (await sh(busy, { cpuMsMax: () => 100 })).ended;
      assert.deepEqual([end.killed, end.signal], ['timeout', 'SIGKILL']);
      let looks = 0;
      const growing = { ...shell(busy), cpuMsMax: () => ((looks += 1) < 4 ? 60_000 : 100) };
      const grown = await patient.run(growing);
      assert.equal((await grown.ended).killed, 'timeout');
      assert.ok(looks >= 4);
      const idle = await (await sh('sleep 0.7', { cpuMsMax: () => 300 })).ended;
      assert.deepEqual([idle.killed, idle.code], ['no', 0]);
    },
  );

  test('lets a process for a slow reader leave its slot to others, as far as there are slots for such', async (context) => {
    const other = mkdtempSync(join(tmpdir(), 'strata-runner-'));
    const few = newRunner(other, { processesMax: 4, processesPerKeyMax: 3, pacedWaitMs: 50 });
    context.onTestFinished(async () => {
      await few.close();
      rmSync(other, { recursive: true });
    });
    const begin = (key: string) => few.run({ ...shell('exec sleep 100'), key });
    const all = await Promise.all(['a', 'b', 'c'].map(begin));
    const waiting = new AbortController();
    const fourth = few.run({ ...shell('echo done'), key: 'd', signal: waiting.signal });
    await all[0]?.pace();
    assert.equal((await (await fourth).ended).stdout, 'done\n', 'the slot of the slow one');
    await assert.rejects(all[1]?.pace() ?? Promise.resolve(), ReaderTooSlow);
    all[0]?.kill();
    await all[0]?.ended;
    await all[2]?.pace();
    for (const running of all) running.kill();
    for (const running of all) await running.ended;
    const again = await Promise.all(['a', 'b', 'c'].map((key) => few.run({ ...shell('echo again'), key })));
    for (const running of again) assert.equal((await running.ended).stdout, 'again\n');
  });

  test('streams input and output of any size', async () => {
    const cat = await sh('exec cat', { stdin: 'stream', stdout: 'stream' });
    const bytes = randomBytes(20 * MIB);
    cat.stdin?.end(bytes);
    const hash = createHash('sha256');
    for await (const chunk of cat.stdout ?? []) hash.update(chunk);
    assert.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'));
    assert.equal((await cat.ended).code, 0);
  });

  test('runs many processes at the same time, each with input and output', async () => {
    const outputs = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const cat = await sh('exec cat', { stdin: 'stream', stdout: 'stream', key: String(index % 3) });
        cat.stdin?.end(String(index));
        return Buffer.concat(await Array.fromAsync(cat.stdout ?? [])).toString();
      }),
    );
    assert.deepEqual(
      outputs,
      outputs.map((_, index) => String(index)),
    );
  });

  // Each clone left a socket open until the server ended.
  test('leaves no connection open behind a process that has ended', skippedFor(NO_PROC), async () => {
    const ends: readonly (readonly [what: string, one: () => Promise<unknown>])[] = [
      [
        'whose output was read',
        async () => {
          const cat = await sh('exec cat', { stdin: 'stream', stdout: 'stream' });
          cat.stdin?.end('text');
          await Array.fromAsync(cat.stdout ?? []);
        },
      ],
      [
        'whose output nobody reads',
        async () => {
          const echo = await sh('echo text', { stdout: 'stream' });
          await echo.ended;
          echo.kill();
        },
      ],
      [
        'whose input was not read',
        async () => {
          const ended = await sh('exit 1', { stdin: 'stream' });
          ended.stdin?.on('error', () => {});
          ended.stdin?.write('text');
          await ended.ended;
        },
      ],
    ];
    for (const [what, one] of ends) {
      await one();
      const before = openSockets();
      for (let times = 0; times < 20; times += 1) await one();
      await eventually(what, () => openSockets() <= before + 2);
    }
  });

  test('keeps the output of a process that ends without reading its input', async () => {
    const process = await sh('echo enough; exit 1', { stdin: 'stream', stdout: 'stream' });
    process.stdin?.on('error', () => {});
    process.stdin?.write(randomBytes(4 * MIB));
    assert.equal(Buffer.concat(await Array.fromAsync(process.stdout ?? [])).toString(), 'enough\n');
    assert.equal((await process.ended).code, 1);
  });

  test('bounds how much it keeps of standard error and of collected output', async () => {
    const loud = await (await sh('echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo last', {})).ended;
    assert.equal(loud.stdout, null);
    const output = async (bytes: number) =>
      (await (await sh(`head -c ${bytes} /dev/zero | tr "\\0" x`, {})).ended).stdout;
    assert.equal(await output(COLLECTED_OUTPUT_BYTES_MAX), 'x'.repeat(COLLECTED_OUTPUT_BYTES_MAX));
    assert.equal(await output(COLLECTED_OUTPUT_BYTES_MAX + 1), null);
    const errors = await (await sh('(echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo last) >&2')).ended;
    assert.equal(errors.code, 0);
    assert.ok(errors.stderr.startsWith('first\n') && errors.stderr.endsWith('last\n'));
    assert.ok(errors.stderr.length < 66_000);
  });

  test('reports a NUL on standard error once', async () => {
    let seen = 0;
    const onNul = () => {
      seen += 1;
    };
    await (await sh("printf 'a\\0b' >&2; sleep 0.05; printf '\\0' >&2", { onNul })).ended;
    assert.equal(seen, 1);
  });

  test('rejects when a program cannot be started', async () => {
    await assert.rejects(sh('', { file: '/no/such/program' }), /ENOENT/);
    assert.equal((await (await sh('exit 0')).ended).code, 0);
  });

  test('kills the whole group of a cancelled process', async () => {
    const abort = new AbortController();
    const process = await sh('sleep 100 & echo $!; wait', { stdout: 'stream', signal: abort.signal });
    const sleeper = Number(
      String(
        await process.stdout?.[Symbol.asyncIterator]()
          .next()
          .then(({ value }) => value),
      ),
    );
    assert.ok(isAlive(sleeper) && isAlive(process.pid));
    abort.abort();
    const end = await process.ended;
    assert.equal(end.killed, 'cancelled');
    await eventually('both are gone', () => !isAlive(sleeper) && !isAlive(process.pid));
  });

  test('kills a process that exceeds its time', async () => {
    const end = await (await sh('sleep 100', { wallMsMax: 100 })).ended;
    assert.equal(end.killed, 'timeout');
  });

  test('kills the processes that a finished one left running in its group', async () => {
    const process = await sh('sleep 100 & echo $!');
    const end = await process.ended;
    await eventually('the sleeper is gone', () => !isAlive(Number(end.stdout)));
  });

  test('starts no process for a request that is already cancelled', async () => {
    await assert.rejects(sh('exit 0', { signal: AbortSignal.abort(new Error('gone')) }), /gone/);
  });

  test('bounds memory, file size, processor time and core files', async () => {
    const memory = `exec '${process.execPath}' -e 'const all=[];for(;;)all.push(Buffer.alloc(${MIB}, 1))'`;
    assert.notEqual((await (await sh(memory)).ended).code, 0);
    const file = await (await sh(`head -c ${3 * MIB} /dev/zero > '${folder}/large'`)).ended;
    assert.notEqual(file.code, 0);
    const cpu = await (await sh('exec sh -c "while :; do :; done"')).ended;
    assert.equal(cpu.signal, 'SIGXCPU');
    assert.equal((await (await sh('ulimit -c')).ended).stdout, '0\n');
  });
});

describe('the process helper', () => {
  test('is replaced when it dies, and the processes it ran fail and are killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strata-runner-'));
    const runner = newRunner(folder);
    try {
      const process_ = await runner.run(shell('echo $PPID; sleep 100 & echo $!; wait', { stdout: 'stream' }));
      const pids = String(
        await process_.stdout?.[Symbol.asyncIterator]()
          .next()
          .then(({ value }) => value),
      );
      const [helper, sleeper] = pids.split('\n').map(Number);
      process.kill(helper ?? 0, 'SIGKILL');
      assert.equal((await process_.ended).killed, 'lost');
      await eventually('its processes are gone', () => !isAlive(sleeper ?? 0) && !isAlive(process_.pid));
      assert.equal((await (await runner.run(shell('exit 7'))).ended).code, 7);
    } finally {
      await runner.close();
      rmSync(folder, { recursive: true });
    }
  });

  test('survives the deletion of its socket, and its connections go on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strata-runner-'));
    const runner = newRunner(folder);
    try {
      for (let round = 0; round < 3; round += 1) {
        const cats = Array.from({ length: 8 }, async (_, index) => {
          const cat = await runner.run(shell('exec cat', { stdin: 'stream', stdout: 'stream' }));
          cat.stdin?.end(String(index));
          return Buffer.concat(await Array.fromAsync(cat.stdout ?? [])).toString();
        });
        assert.equal((await Promise.all(cats)).join(''), '01234567');
        rmSync(folder, { recursive: true });
      }
    } finally {
      await runner.close();
      assert.ok(!existsSync(folder) || readdirSync(join(folder, 'sockets')).length === 0);
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('ends with the server, even if the server is killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strata-runner-'));
    const program = new URL('../../../support/sleeping-server.ts', import.meta.url);
    const server = spawn(process.execPath, [program.pathname, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    for await (const chunk of server.stdout) {
      text += String(chunk);
      if (text.endsWith('\n')) break;
    }
    const pids = text.trim().split(' ').map(Number);
    assert.equal(pids.length, 3);
    assert.ok(pids.every(isAlive));
    server.kill('SIGKILL');
    await eventually('leader, sleeper and helper are gone', () => !pids.some(isAlive));
    assert.deepEqual(readdirSync(join(folder, 'sockets')), [], 'the helper removed its socket');
    rmSync(folder, { recursive: true });
  });
});

function newRunner(folder: string, options: Partial<ProcessRunnerOptions> = {}): ProcessRunner {
  return createProcessRunner({
    limits: LIMITS,
    processesMax: 8,
    processesPerKeyMax: 8,
    directory: folder,
    onHelperLine: (line) => console.error(line),
    ...options,
  });
}

function shell(script: string, options: Partial<RunOptions> = {}): RunOptions {
  return {
    file: '/bin/sh',
    args: ['-c', script],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdin: 'none',
    stdout: 'collect',
    key: 'test',
    wallMsMax: 30_000,
    ...options,
  };
}
