/**
 * `npm run strata`: the command line from a checkout, in the folder where the person called npm. npm itself runs a
 * script in the folder of the package.
 */
const folder = process.env['INIT_CWD'];
if (folder !== undefined) process.chdir(folder);
await import('./main.ts');
