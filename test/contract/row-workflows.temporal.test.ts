/** The contract of workflows on rows, on Temporal's test server. */
import { describe } from 'vitest';
import { needs } from '../support/optional-suites.ts';
import { openOnTemporal } from '../support/temporal-workflows.ts';
import { rowWorkflowsContract } from './row-workflows.ts';

describe("with Temporal's test server", needs('temporal-test-server'), () => {
  rowWorkflowsContract('Temporal', openOnTemporal);
});
