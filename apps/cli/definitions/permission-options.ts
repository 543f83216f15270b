/** Options of what may be done where, which access tokens and trust rules have in common. */
import { GRANTS, SCOPES } from '../client/operations.ts';
import type { OptionDefinition } from './definition.ts';

export const LABEL: OptionDefinition = { name: 'name', kind: 'text', value: 'NAME', description: 'a label' };

export const SELECTION: readonly OptionDefinition[] = [
  {
    name: 'scope',
    kind: 'text',
    value: 'SCOPE',
    choices: SCOPES,
    description: 'all repositories, or only those of --repository-ids',
  },
  { name: 'repository-ids', kind: 'list', value: 'LIST', description: 'the repositories of SELECTED_REPO' },
];

export function grantsOption(description: string): OptionDefinition {
  return { name: 'grants', kind: 'list', value: 'LIST', choices: GRANTS, description };
}
