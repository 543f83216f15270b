/** `strata tag`. */
import type { CommandDefinition } from './definition.ts';

export const TAG_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'tag create',
    summary: 'Create a tag, with a message an annotated one',
    arguments: [
      { name: 'repository', description: 'NAME, USER/NAME or a URL' },
      { name: 'name', description: 'its short name' },
      { name: 'id', description: 'the whole id of the object that it is to lead to' },
    ],
    options: [
      { name: 'message', kind: 'text', description: 'makes the tag annotated, by the account' },
      { name: 'move', kind: 'flag', description: 'let a tag that is there lead to the object' },
    ],
    examples: ["strata tag create engine v1.0 6dcb09b5b57875f334f61aebed695e2e4193db5e --message 'Version 1.0'"],
    load: async () => (await import('../commands/tag.ts')).create,
  },
];
