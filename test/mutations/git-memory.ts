/** The guards of the control group that git runs in, each with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const GROUP = 'test/adapters/git/process/memory-group.test.ts';

export const GIT_MEMORY_MUTATIONS: readonly Mutation[] = [
  {
    without: 'a helper that joins the group of git',
    file: 'adapters/git/process/helper-process.ts',
    text: "options.memoryGroup?.joinFile ?? ''",
    by: "''",
    test: GROUP,
    red: 'holds the helper and all that it starts',
  },
  {
    without: 'a look at whose processes are moved to a leaf',
    file: 'adapters/git/process/delegated-group.ts',
    text: '!pids.every((pid) => isOwn(pid, proc))',
    by: '!pids.some((pid) => isOwn(pid, proc))',
    test: GROUP,
    red: 'is left as it is while it holds processes of others',
  },
  {
    without: 'a look at whether the server of a group is dead',
    file: 'adapters/git/process/memory-group.ts',
    text: 'pid !== undefined && !isAlive(Number(pid))',
    by: 'pid !== undefined',
    test: GROUP,
    red: 'that a killed server left is removed by the next',
  },
];
