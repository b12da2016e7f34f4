import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface MountGuard {
  /** Ends the guard; the mount is the caller's business again. */
  release(): Promise<void>
}

/** Waits for its input to end, which is when its maker has ended in whatever way, and takes the mount out of the tree. */
const script = 'read -r _; umount -l "$1" 2>/dev/null'

/**
 * Sees to it that a mount does not outlive this process, also one that is killed: the kernel would keep it, and the next start may never come.
 * Made before the mount, so that there is no moment without it.
 */
export function guardMount(path: string): MountGuard {
  const child = spawn('/bin/sh', ['-c', script, 'tutti-unmount', path], {
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    // Not in the group that a terminal or a supervisor kills together.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // A guard that could not be started leaves the mount to the reaper.
  const ended = once(child, 'exit').catch(() => undefined)
  child.stdin.on('error', () => {})
  child.unref()
  return {
    async release() {
      // Not by ending its input: it would unmount whatever has that path by then.
      child.kill('SIGKILL')
      await ended
      child.stdin.destroy()
    },
  }
}
