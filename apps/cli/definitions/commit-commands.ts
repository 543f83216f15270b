/** `strata commit`. */
import type { CommandDefinition } from './definition.ts';

export const COMMIT_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'commit',
    summary: 'Write files of the current folder to a branch, without a clone',
    arguments: [
      { name: 'repository', description: 'NAME, USER/NAME or a URL' },
      { name: 'path', description: 'files, and folders with all that is in them', several: true },
    ],
    options: [
      { name: 'branch', kind: 'text', value: 'NAME', description: 'its short name', required: true },
      { name: 'message', kind: 'text', description: 'that of the commit', required: true },
      { name: 'delete', kind: 'list', value: 'PATH', description: 'a file or a folder to delete', whole: true },
      {
        name: 'expected',
        kind: 'text',
        value: 'ID',
        description: 'the head of the branch now, or any; by default what it is when the command looks',
      },
      {
        name: 'start',
        kind: 'text',
        value: 'REF',
        description: 'where a new branch begins: a branch, a tag or a commit',
      },
      { name: 'dry-run', kind: 'flag', description: 'only print what would change' },
    ],
    notes: [
      'A file has the path in the repository that it has below the current folder, and at most 64 MiB. Needs the grant GIT_HTTP_WRITE, and API_COMMITS_READ unless --expected is given.',
    ],
    examples: [
      "strata commit engine --branch main --message 'Update the site' site --delete site/old.html",
      "strata commit engine --branch fix --start main --message 'Fix it' src/main.c",
    ],
    load: async () => (await import('../commands/commit.ts')).commit,
  },
];
