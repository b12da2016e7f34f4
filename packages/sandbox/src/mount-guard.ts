import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Socket } from 'node:net'

/**
 * Sees to it that no mount outlives this process, also when that is killed: the kernel would keep it, and the next start may never
 * come.
 */
export interface MountGuard {
  /** To be called before the mount is made, so that there is no moment without it. */
  add(id: string): void
  /** The mount is gone. */
  remove(id: string): void
}

/** Keeps the ids that it is told, and unmounts them when its input ends, which is when its maker has ended in whatever way. */
const script = `
ids=' '
while read -r what id; do
  case $what in
    add) ids="$ids$id " ;;
    remove) ids="\${ids%% $id *} \${ids#* $id }" ;;
  esac
done
for id in $ids; do umount -l "$1/$id/data"; done
`

/** One process for all sandboxes below `root`, started with the first. */
export function createMountGuard(root: string): MountGuard {
  const held = new Set<string>()
  let child: ChildProcessByStdio<Socket, null, null> | undefined
  const tell = (word: string, id: string) => child?.stdin.write(`${word} ${id}\n`)

  const start = () => {
    child = spawn('/bin/sh', ['-c', script, 'tutti-unmount', root], {
      cwd: '/',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      // Not in the group that a terminal or a supervisor kills together.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    }) as ChildProcessByStdio<Socket, null, null>
    // One that cannot be started, or is killed, leaves the mounts to the next one and to the reaper.
    const gone = () => (child = undefined)
    child.once('error', gone).once('exit', gone)
    child.stdin.on('error', () => {})
    child.unref()
    child.stdin.unref()
    for (const id of held) tell('add', id)
  }

  return {
    add(id) {
      held.add(id)
      if (child) tell('add', id)
      else start()
    },
    remove(id) {
      if (held.delete(id)) tell('remove', id)
    },
  }
}
