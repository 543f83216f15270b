/** `strata blame`. */
import type { CommandDefinition } from './definition.ts';
import { REF_OPTION, REPOSITORY } from './repository-arguments.ts';

export const BLAME_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'blame',
    summary: 'Show which commit and which push brought each line of a file',
    arguments: [REPOSITORY, { name: 'path', description: 'a file, from the root of the repository' }],
    options: [REF_OPTION],
    notes: [
      'Needs the grant API_COMMITS_READ. Pushes and who made them are shown to tokens with the grant ALL and the scope ALL_REPO.',
      'Away from a terminal each line is its commit, the event of the push, who pushed, the path in that commit, its number and its text, with tabs between.',
    ],
    examples: ['strata blame engine src/main.c', 'strata blame engine src/main.c --ref v1.0 --json'],
    load: async () => (await import('../commands/blame.ts')).blame,
  },
];
