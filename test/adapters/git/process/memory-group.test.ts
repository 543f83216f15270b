/** The control group of git's processes: where it is made, that they run in it, and what removes it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { ownControlGroups } from '../../../../adapters/git/process/control-groups.ts';
import { type MemoryGroup, makeMemoryGroup } from '../../../../adapters/git/process/memory-group.ts';
import { createProcessRunner, type ProcessRunner } from '../../../../adapters/git/process/process-runner.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { boundOf, endedIn, groupOf, helperBelow, NO_MEMORY_GROUP, setBound } from '../../../support/memory-group.ts';
import { eventually, isAlive } from '../../../support/processes.ts';
import { skippedFor } from '../../../support/skipped.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
/** A process whose parent is this one, and one that is no descendant of it. */
const CHILD = 4_000_001;
const STRANGER = 4_000_002;

async function runnerIn(context: TestContext, memoryGroup: MemoryGroup | null): Promise<ProcessRunner> {
  const runner = createProcessRunner({
    limits: { memoryBytesMax: GIB, fileBytesMax: 2 * MIB, cpuSecondsMax: 10, openFilesMax: 256 },
    processesMax: 8,
    processesPerKeyMax: 8,
    directory: await tempDir(context),
    onHelperLine: (line) => console.error(line),
    memoryGroup,
  });
  cleanUp(context, () => runner.close());
  return runner;
}

async function sh(runner: ProcessRunner, script: string) {
  return (await begin(runner, script)).ended;
}

function begin(runner: ProcessRunner, script: string) {
  const env = { PATH: '/usr/bin:/bin' };
  const more = { cwd: '/', env, stdin: 'none', stdout: 'collect', key: 'test', wallMsMax: 30_000 } as const;
  return runner.run({ file: '/bin/sh', args: ['-c', script], ...more });
}

function made(group: ReturnType<typeof makeMemoryGroup>): MemoryGroup {
  assert.ok(!('none' in group), 'none' in group ? group.none : '');
  return group;
}

describe('a control group of version 1', skippedFor(NO_MEMORY_GROUP), () => {
  test('holds the helper and all that it starts, with the limits that they have without it', async (context) => {
    const group = made(makeMemoryGroup());
    assert.equal(path.dirname(group.folder), groupOf(process.pid));
    const runner = await runnerIn(context, group);
    assert.equal(group.isInUse(), false);
    const { stdout } = await sh(runner, 'cat /proc/self/oom_score_adj; ulimit -c; ulimit -n; cat /proc/self/cgroup');
    const [oomScore, core, files, ...groups] = (stdout ?? '').split('\n');
    assert.deepEqual([oomScore, core, files], ['500', '0', '256']);
    assert.ok(groups.join('\n').includes(path.basename(group.folder)), stdout ?? '');
    assert.equal(groupOf(helperBelow(process.pid)), group.folder);
    assert.equal(group.isInUse(), true);
    assert.notEqual(groupOf(process.pid), group.folder);
  });

  test('has three quarters of the memory of the machine, or of the group that the server is in', async (context) => {
    const group = made(makeMemoryGroup());
    cleanUp(context, () => group.remove());
    assert.equal(boundOf(group.folder), group.bytesMax);
    assert.ok(group.bytesMax <= totalmem() * 0.75 && group.bytesMax >= 0.5 * Math.min(totalmem(), GIB));
  });

  test('is joined again by a helper that follows one that died', async (context) => {
    const group = made(makeMemoryGroup());
    const runner = await runnerIn(context, group);
    const { ended } = await begin(runner, 'sleep 100');
    process.kill(helperBelow(process.pid), 'SIGKILL');
    assert.equal((await ended).killed, 'lost');
    assert.ok((await sh(runner, 'cat /proc/self/cgroup')).stdout?.includes(path.basename(group.folder)));
  });

  test('that has vanished keeps no helper from starting', async (context) => {
    const group = made(makeMemoryGroup());
    rmdirSync(group.folder);
    const end = await sh(await runnerIn(context, group), 'cat /proc/self/oom_score_adj');
    assert.deepEqual([end.stdout, end.stderr], ['500\n', '']);
    assert.equal(group.isInUse(), false);
  });

  test('has its largest process ended when all of them take more than the bound, and no other', async (context) => {
    const group = made(makeMemoryGroup());
    const runner = await runnerIn(context, group);
    await sh(runner, 'exit 0');
    setBound(group.folder, 200 * MIB);
    const waiting = sh(runner, 'sleep 2; echo done');
    // dd reads a whole block into its memory.
    const greedy = await sh(runner, 'exec dd if=/dev/zero of=/dev/null bs=500000000 count=1');
    assert.deepEqual([greedy.signal, greedy.killed, greedy.outgrown], ['SIGKILL', 'no', false]);
    assert.equal((await waiting).stdout, 'done\n');
    assert.equal(endedIn(group.folder), 1);
  });

  test('goes with its runner, also when processes still run in it', async (context) => {
    const group = made(makeMemoryGroup());
    const runner = await runnerIn(context, group);
    const { ended } = await begin(runner, 'sleep 100');
    await runner.close();
    assert.equal((await ended).killed, 'lost');
    assert.ok(!existsSync(group.folder));
  });

  test('that a killed server left is removed by the next, and those of other servers stay', async (context) => {
    const space = /\d+/.exec(path.basename(made(await madeFor(context)).folder))?.[0];
    const name = (pid: number, of = space) => path.join(groupOf(process.pid), `strata-git-${of}-${pid}-abcdef`);
    const dead = spawnSync('true').pid;
    const stale = name(dead);
    // One of a living server, empty for a moment; one of another process namespace, whose ids mean nothing here; in
    // use.
    const kept = [name(process.ppid), name(process.pid), name(dead, '1'), name(dead + 1_000_000)];
    for (const folder of [stale, ...kept]) {
      mkdirSync(folder);
      cleanUp(context, () => existsSync(folder) && rmdirSync(folder));
    }
    const inUse = spawnSync('/bin/sh', [
      '-c',
      'sleep 100 >/dev/null 2>&1 & echo $!; echo $! > "$0"',
      `${kept[3]}/cgroup.procs`,
    ]);
    const sleeper = Number(inUse.stdout);
    cleanUp(context, async () => {
      process.kill(sleeper, 'SIGKILL');
      await eventually('the sleeper is gone', () => !isAlive(sleeper));
    });
    await madeFor(context);
    assert.ok(!existsSync(stale));
    assert.deepEqual(
      kept.filter((folder) => !existsSync(folder)),
      [],
    );
  });
});

async function madeFor(context: TestContext): Promise<MemoryGroup> {
  const group = made(makeMemoryGroup());
  cleanUp(context, () => group.remove());
  return group;
}

interface FakeSystem {
  readonly proc: string;
  /** Where the hierarchy is mounted. */
  readonly mount: string;
  write(file: string, text: string): void;
  read(file: string): string;
}

/** Files that look like those of a system: what the kernel does with what is written to them is not imitated. */
async function fakeSystem(
  context: TestContext,
  { cgroup, mountinfo }: { readonly cgroup: string; readonly mountinfo: (mount: string) => string },
): Promise<FakeSystem> {
  const folder = await tempDir(context);
  const mount = path.join(folder, 'mount');
  const proc = path.join(folder, 'proc');
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  };
  mkdirSync(mount);
  write('proc/self/cgroup', cgroup);
  write('proc/self/mountinfo', mountinfo(mount));
  write(`proc/${CHILD}/stat`, `${CHILD} (a) b) S ${process.pid} 1 1`);
  write(`proc/${STRANGER}/stat`, `${STRANGER} (sh) S 1 1 1`);
  mkdirSync(path.join(proc, 'self/ns'));
  symlinkSync('pid:[42]', path.join(proc, 'self/ns/pid'));
  return { proc, mount, write, read: (file) => readFileSync(path.join(folder, file), 'latin1') };
}

const unified = (mount: string) =>
  `24 1 0:21 / /proc rw - proc proc rw\n31 23 0:28 / ${mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`;

describe('the group of this process', () => {
  const memory = (root: string) => (mount: string) =>
    `35 31 0:32 ${root} ${mount} rw,relatime - cgroup cgroup rw,memory\n`;

  test('is found below the place where its hierarchy is mounted', async (context) => {
    const system = await fakeSystem(context, { cgroup: '9:cpu:/x\n4:memory:/a/b\n0::/\n', mountinfo: memory('/') });
    mkdirSync(path.join(system.mount, 'a/b'), { recursive: true });
    const own = { version: 1, controllers: ['memory'], folder: `${system.mount}/a/b`, mountPoint: system.mount };
    assert.deepEqual(ownControlGroups(system.proc), [own]);
  });

  test('is the top of what a container shows of it, or below that', async (context) => {
    for (const [root, cgroup, below] of [
      ['/docker/1', '/docker/1', ''],
      ['/docker/1', '/docker/1/a', '/a'],
      ['/', '/docker/1', ''],
      ['/', '/../proc', ''],
    ] as const) {
      const system = await fakeSystem(context, { cgroup: `4:memory:${cgroup}\n`, mountinfo: memory(root) });
      mkdirSync(path.join(system.mount, 'a'));
      const [own] = ownControlGroups(system.proc);
      assert.equal(own?.folder, `${system.mount}${below}`, cgroup);
    }
  });

  test('does not exist on a system without', async (context) => {
    const none = await tempDir(context);
    assert.deepEqual(ownControlGroups(none), []);
    assert.deepEqual(makeMemoryGroup(none), { none: 'this system has no control groups' });
  });

  test('gets none below it where nothing may be written', async (context) => {
    const system = await fakeSystem(context, { cgroup: '4:memory:/\n', mountinfo: memory('/') });
    // Like a read-only mount, a file refuses every folder below it, also to root.
    const closed = path.join(system.mount, 'closed');
    writeFileSync(closed, '');
    system.write('proc/self/mountinfo', memory('/')(closed));
    const group = makeMemoryGroup(system.proc);
    assert.match('none' in group ? group.none : '', /ENOTDIR/);
  });
});

// What the kernel of version 2 does is not tested here, only what is written to its files and in which case.
describe('a control group of version 2, imitated by files', () => {
  async function unit(
    context: TestContext,
    { own = '/unit', procs = [process.pid], controllers = 'cpu memory pids', subtree = '' } = {},
  ): Promise<FakeSystem> {
    const system = await fakeSystem(context, { cgroup: `0::${own}\n`, mountinfo: unified });
    system.write('mount/unit/cgroup.controllers', controllers);
    system.write('mount/unit/cgroup.subtree_control', subtree);
    system.write('mount/unit/cgroup.procs', procs.map((pid) => `${pid}\n`).join(''));
    system.write('mount/unit/memory.max', 'max\n');
    return system;
  }

  test('gets a leaf for the server and its children, and one with a bound for git beside it', async (context) => {
    const system = await unit(context, { procs: [process.pid, CHILD] });
    const group = made(makeMemoryGroup(system.proc));
    assert.equal(path.dirname(group.folder), path.join(system.mount, 'unit'));
    assert.equal(system.read('mount/unit/server/cgroup.procs'), `${process.pid}\n${CHILD}\n`);
    assert.equal(system.read('mount/unit/cgroup.subtree_control'), '+memory');
    assert.equal(readFileSync(path.join(group.folder, 'memory.max'), 'latin1'), String(group.bytesMax));
    await sh(await runnerIn(context, group), 'exit 0');
    assert.equal(readFileSync(group.joinFile, 'latin1'), `${helperBelow(process.pid)}\n`);
  });

  test('that an earlier start or systemd has divided is taken as it is', async (context) => {
    for (const subtree of ['memory', '']) {
      const system = await unit(context, { own: '/unit/server', procs: [], subtree });
      mkdirSync(path.join(system.mount, 'unit/server'));
      const group = made(makeMemoryGroup(system.proc));
      assert.equal(path.dirname(group.folder), path.join(system.mount, 'unit'));
      assert.equal(system.read('mount/unit/cgroup.subtree_control'), subtree === '' ? '+memory' : subtree);
      assert.ok(!existsSync(path.join(system.mount, 'unit/server/cgroup.procs')));
    }
  });

  test('is bounded by what the groups above it may have', async (context) => {
    const system = await unit(context);
    system.write('mount/unit/memory.max', `${400 * MIB}\n`);
    assert.equal(made(makeMemoryGroup(system.proc)).bytesMax, 300 * MIB);
    const below = await unit(context, { own: '/unit/server', procs: [] });
    mkdirSync(path.join(below.mount, 'unit/server'));
    below.write('mount/memory.max', `${200 * MIB}\n`);
    assert.equal(made(makeMemoryGroup(below.proc)).bytesMax, 150 * MIB);
  });

  test('is left as it is while it holds processes of others', async (context) => {
    for (const other of [STRANGER, process.ppid, 1, 0]) {
      const system = await unit(context, { procs: [process.pid, other] });
      system.write(`proc/${process.ppid}/stat`, `${process.ppid} (node) S 1 1 1`);
      assert.deepEqual(makeMemoryGroup(system.proc), { none: 'its control group holds processes of others' });
      assert.ok(!existsSync(path.join(system.mount, 'unit/server')));
      assert.equal(system.read('mount/unit/cgroup.subtree_control'), '');
    }
  });

  test('is left as it is without the controller of memory', async (context) => {
    const system = await unit(context, { controllers: 'cpu pids' });
    assert.deepEqual(makeMemoryGroup(system.proc), { none: 'the memory of its control group is not delegated to it' });
    assert.ok(!existsSync(path.join(system.mount, 'unit/server')));
  });
});
