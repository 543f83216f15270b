/** The workflows' contract on the embedded engine. */
import { openEmbedded } from '../support/embedded-workflows.ts';
import { workflowsContract } from './workflows.ts';

workflowsContract('the embedded engine', openEmbedded);
