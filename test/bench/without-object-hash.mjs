/**
 * Keeps away the library that names objects in process, as on machines for which it has no build: there git checks
 * small packs too. Loaded into the server that is measured:
 * `NODE_OPTIONS=--import=./test/bench/without-object-hash.mjs`.
 */
import * as module from 'node:module';

// The launcher's Node may be too old for hooks, and loads no such library.
module.registerHooks?.({
  resolve: (name, context, next) => {
    if (name.startsWith('es-git-')) throw new Error(`${name} is kept away`);
    return next(name, context);
  },
});
