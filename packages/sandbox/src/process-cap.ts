import { release } from 'node:os'

/** Room above the limit, so that the watchdog sees it passed and ends the sandbox. */
const margin = 8
/** dash has no -u, and bash means something else by -p. */
const script = 'ulimit -u "$1" 2>/dev/null || ulimit -p "$1"; shift; exec "$@"'

/**
 * Puts a bound on a fork bomb where only the watchdog limits processes: it may not get the cpu in time. Run inside the user namespace, whose
 * processes alone are counted there since Linux 5.14; the kernel never applies it to root.
 */
export function capProcesses(argv: readonly string[], pids: number): readonly string[] {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  const countsByNamespace = major > 5 || (major === 5 && minor >= 14)
  if (!countsByNamespace || process.getuid?.() === 0) return argv
  return ['/bin/sh', '-c', script, 'tutti-limit', String(pids + margin), ...argv]
}
