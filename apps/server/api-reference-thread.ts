/**
 * The program of the thread that makes the API reference: it answers with it, and ends.
 *
 * Invariants: the thread has no environment and reads nothing but its own modules.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { makeOpenApiDocument } from '../api/document.ts';
import { readOpenApi } from '../website/docs/open-api.ts';

const port = parentPort;
if (port === null) throw new TypeError('This module runs as a thread of the API reference');

const reference = readOpenApi(await makeOpenApiDocument(String(workerData)));
// The structured clone does not take functions, which the reference has none of.
port.postMessage(reference);
