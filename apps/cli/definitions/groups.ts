/** The groups of commands, in the order of the help. */
import type { GroupDefinition } from './definition.ts';

export const GROUPS: readonly GroupDefinition[] = [
  { name: 'repo', summary: 'Work with repositories' },
  { name: 'ref', summary: 'Work with refs without a clone; changes need the grant GIT_HTTP_WRITE' },
  { name: 'tag', summary: 'Work with tags without a clone; needs the grant GIT_HTTP_WRITE' },
  { name: 'token', summary: 'Work with access tokens; needs the grant ALL and the scope ALL_REPO' },
  { name: 'webhook', summary: 'Work with webhooks; needs the grant API_WEBHOOKS' },
  { name: 'bucket', summary: 'Work with storage buckets of your own; needs the grant API_STORAGE' },
  { name: 'trust-rule', summary: 'Decide which jobs may exchange identity tokens; needs the grant API_OIDC_TRUST' },
  { name: 'audit', summary: "Read and verify the account's log; needs the grant ALL and the scope ALL_REPO" },
];
