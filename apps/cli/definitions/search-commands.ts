/** `strata search`. */
import type { CommandDefinition } from './definition.ts';
import { REF_OPTION, REPOSITORY } from './repository-arguments.ts';

export const SEARCH_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'search',
    summary: 'Search in the files of a repository, without a clone',
    arguments: [REPOSITORY, { name: 'word', description: 'what the lines hold, in exactly this case' }],
    options: [
      REF_OPTION,
      { name: 'path', kind: 'text', value: 'PATH', description: 'only this folder or file' },
      { name: 'regex', kind: 'flag', description: 'WORD is an expression of PCRE' },
    ],
    notes: [
      'Needs the grant API_COMMITS_READ. It finds at most 1,000 lines, and warns where it could not search all files.',
      'Away from a terminal each line is the path, the number of the line and its text, with tabs between.',
    ],
    examples: ['strata search engine teeth', "strata search engine 'int \\w+;' --regex --path src --ref v1.0 --json"],
    load: async () => (await import('../commands/search.ts')).search,
  },
];
