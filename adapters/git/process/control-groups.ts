/**
 * Where this process stands in the control groups of Linux: cgroups(7).
 *
 * Invariants: nothing here writes. A group is named by a folder that exists below the place where its hierarchy is
 * mounted; in a container that shows a part of the tree, that is the part's top if the group's own path is hidden.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ControlGroup {
  readonly version: 1 | 2;
  /** For version 1: what its hierarchy controls, such as `memory`. Version 2 has one hierarchy, and names none here. */
  readonly controllers: readonly string[];
  readonly folder: string;
  /** The top of what this process sees of the hierarchy; `folder` is there or below. */
  readonly mountPoint: string;
}

/** The groups of this process, one a hierarchy that is mounted; none where the system is not Linux. */
export function ownControlGroups(proc = '/proc'): readonly ControlGroup[] {
  const mounts = hierarchyMounts(textOf(`${proc}/self/mountinfo`));
  return textOf(`${proc}/self/cgroup`)
    .split('\n')
    .flatMap((line) => {
      const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      if (names === undefined || path === undefined) return [];
      const controllers = names === '' ? [] : names.split(',');
      const own = mounts.filter((mount) => mount.version === (names === '' ? 2 : 1) && holds(mount, controllers));
      const mount = own.find(({ root }) => isBelow(root, path)) ?? own[0];
      if (mount === undefined) return [];
      const { version, mountPoint } = mount;
      return [{ version, controllers, folder: folderOf(mount, path), mountPoint }];
    });
}

interface HierarchyMount {
  readonly version: 1 | 2;
  /** The path in the hierarchy that the mount point shows. */
  readonly root: string;
  readonly mountPoint: string;
  readonly options: readonly string[];
}

/**
 * `35 31 0:32 /root /mount/point rw - cgroup cgroup rw,memory`; before the dash there may be more:
 * proc_pid_mountinfo(5).
 */
function hierarchyMounts(mountinfo: string): readonly HierarchyMount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [, root, mountPoint, type, options] = /^\d+ \d+ \S+ (\S+) (\S+) .*- (cgroup2?) \S+ (\S+)$/.exec(line) ?? [];
    if (root === undefined || mountPoint === undefined || options === undefined) return [];
    const version = type === 'cgroup2' ? 2 : 1;
    return [{ version, root: unescaped(root), mountPoint: unescaped(mountPoint), options: options.split(',') }];
  });
}

/** A space is written `\040`. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function holds({ options }: HierarchyMount, controllers: readonly string[]): boolean {
  return controllers.every((controller) => options.includes(controller));
}

function folderOf({ root, mountPoint }: HierarchyMount, path: string): string {
  const folder = join(mountPoint, path.slice(root === '/' ? 0 : root.length));
  return isBelow(root, path) && existsSync(folder) ? folder : mountPoint;
}

/** A path that begins with `/..` is outside of what this process's namespace shows: cgroup_namespaces(7). */
function isBelow(root: string, path: string): boolean {
  if (path.startsWith('/..')) return false;
  return root === '/' || path === root || path.startsWith(`${root}/`);
}

/** Returns '' for a file that this system does not have. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // Not Linux, or /proc is hidden: then there are no groups to see.
    return '';
  }
}
