/**
 * Loaded into a server before its own modules (`node --import`): the process seems to take no time of the processor, so
 * the verification in the background, which takes a hundredth of a core, goes on without rest.
 */
process.cpuUsage = () => ({ user: 0, system: 0 });
