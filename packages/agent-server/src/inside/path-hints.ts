import { isGitName } from '@tutti/core'
import { maxWatchedFolders, pathKey, watchFolders } from '@tutti/workspace'

/**
 * Tells at once that something has happened at a path. A hint only: watching loses events when there are many, and some file systems
 * have none, so what is true is what a walk finds.
 */
export interface PathHints {
  /** Calls `onHint` whenever there is something to {@link take}, until `signal` aborts. Without it, nothing is watched. */
  begin(onHint: () => void, signal: AbortSignal): void
  /** Watches these folders (path keys) and the root, and no others. */
  follow(folders: readonly string[]): void
  /** The paths at which something has happened; they are forgotten then. */
  take(): ReadonlySet<string>
  /** A walk sees all that has happened until now. */
  forget(): void
  /** No hint for so many milliseconds: what follows from one shall not take all of the time. */
  rest(ms: number): void
}

/** From the first event to the hint, in milliseconds: an editor that writes beside a file and renames is over by then. */
const settleMs = 20
/** A path that is written again and again gets a hint so often, in milliseconds. */
const repeatMs = 1000
/** So many at once are for a walk, which is faster. */
const maxPaths = 200

export function createPathHints(root: string): PathHints {
  const pending = new Set<string>()
  const taken = new Map<string, number>()
  let wanted: readonly string[] = []
  let onHint: (() => void) | undefined
  let restUntil = 0
  let timer: NodeJS.Timeout | undefined

  const dueAt = (key: string) => Math.max(restUntil, (taken.get(key) ?? -repeatMs) + repeatMs)
  const due = () => {
    const now = performance.now()
    return [...pending].filter((key) => dueAt(key) <= now)
  }
  const schedule = () => {
    if (timer || pending.size === 0 || !onHint) return
    const earliest = Math.min(...[...pending].map(dueAt))
    const fire = () => {
      timer = undefined
      if (due().length > 0) onHint?.()
      else schedule()
    }
    timer = setTimeout(fire, Math.max(settleMs, earliest - performance.now()))
    timer.unref()
  }
  const happened = (folder: string, name: Buffer) => {
    if (isGitName(name)) return
    pending.add(folder === '' ? pathKey(name) : `${folder}/${pathKey(name)}`)
    if (pending.size > maxPaths) forget()
    schedule()
  }
  const forget = () => {
    pending.clear()
    clearTimeout(timer)
    timer = undefined
  }

  // Some hints are as good as none that can be relied on.
  const watched = watchFolders(root, (folder, name) => name && happened(folder, name))
  const apply = () =>
    watched.follow(new Set(onHint && wanted.length <= maxWatchedFolders ? ['', ...wanted] : []))

  return {
    begin(tell, signal) {
      onHint = tell
      const end = () => {
        onHint = undefined
        forget()
        apply()
      }
      signal.addEventListener('abort', end, { once: true })
      apply()
    },
    follow(folders) {
      wanted = folders
      apply()
    },
    take() {
      const keys = new Set(due())
      const now = performance.now()
      for (const [key, at] of taken) if (at + repeatMs <= now) taken.delete(key)
      for (const key of keys) {
        pending.delete(key)
        taken.set(key, now)
      }
      schedule()
      return keys
    },
    forget,
    rest(ms) {
      restUntil = performance.now() + ms
    },
  }
}
