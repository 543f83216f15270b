/** The workflows' contract on Temporal's test server. */
import { describe } from 'vitest';
import { needs } from '../support/optional-suites.ts';
import { openOnTemporal } from '../support/temporal-workflows.ts';
import { workflowsContract } from './workflows.ts';

describe("with Temporal's test server", needs('temporal-test-server'), () => {
  workflowsContract('Temporal', openOnTemporal);
});
