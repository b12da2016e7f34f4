import { foldersOf } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import { changedFile, changePath, pathKey, type CapturedChange } from '@tutti/workspace'
import { changeOfEvent, eventPath } from '@tutti/workspace/log'
import { cannotHave } from '../workspace/cannot-have.ts'
import type { PathState } from './path-state.ts'
import type { SyncState } from './sync-state.ts'

/** An event of the agent's log with the position after it. */
export interface PositionedEvent {
  readonly offsetKey: string
  readonly eventJson: string
}

/** What a change makes of its path. */
export function stateOfChange(change: CapturedChange): PathState {
  if (change.action === 'deleted') return undefined
  const { state } = change
  return state.fileType === 'dir' ? { mode: '040000' } : { mode: state.mode, hash: state.hash }
}

/**
 * Takes events into what is known of the agent's workspace: what the sandbox says of a path counts only when it has the user's version of it
 * (PROTOCOL.md §3).
 *
 * @returns the paths that they are about
 */
export function takeEvents(state: SyncState, events: readonly PositionedEvent[]): ReadonlySet<string> {
  const touched = new Set<string>()
  const last = events.at(-1)
  if (!last) return touched
  state.change((write) => {
    for (const { eventJson } of events) {
      // Most of a log is talk.
      if (!/"type":"(file_change|file_sync|file_sync_failed|ack)"/.test(eventJson)) continue
      const event = JSON.parse(eventJson) as RunEvent
      if (event.type === 'ack') write.acked(event.commandId)
      if (event.type === 'file_sync_failed')
        write.failed(event.commandId, pathKey(eventPath(event)), cannotHave(event.code, event.detail))
      if (event.type !== 'file_change' && event.type !== 'file_sync') continue
      const change = changeOfEvent(event)
      const key = pathKey(changePath(change))
      if (event.type === 'file_change' && state.isPending(key)) continue
      // It is not kept any more, which is no reason to take it from the user.
      if (change.action === 'deleted' && change.ignored) continue
      if (event.type === 'file_sync') {
        write.pending(event.commandId, key)
        for (const other of replacedBy(state, key, change)) {
          write.remote(other, undefined)
          touched.add(other)
        }
      }
      write.remote(key, stateOfChange(change))
      touched.add(key)
    }
    write.offset(last.offsetKey)
  })
  return touched
}

/** What makes room for a change of the user's, in the workspace as in each sandbox: a file on the way to it, and all below a file. */
function replacedBy(state: SyncState, key: string, change: CapturedChange): readonly string[] {
  if (change.action === 'deleted') return []
  const onTheWay = [...foldersOf(key)].filter((folder) => state.get(folder).remote !== undefined)
  return changedFile(change) ? [...onTheWay, ...state.below(key)] : onTheWay
}
