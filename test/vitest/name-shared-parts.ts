/** Sets the shared parts of the run in the environment of a test file's process, which its children inherit. */
import { inject } from 'vitest';

Object.assign(process.env, inject('sharedParts'));
