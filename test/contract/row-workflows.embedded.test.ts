/** The contract of workflows on rows, on the embedded engine. */
import { openEmbedded } from '../support/embedded-workflows.ts';
import { rowWorkflowsContract } from './row-workflows.ts';

rowWorkflowsContract('the embedded engine', openEmbedded);
