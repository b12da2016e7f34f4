import type { RunEvent } from '@tutti/protocol'
import { changePath, pathKey, type CapturedChange } from '@tutti/workspace'
import { changeOfEvent, eventPath } from '@tutti/workspace/log'
import type { PathState } from './path-state.ts'
import type { SyncState } from './sync-state.ts'

/** An event of the agent's log with the position after it. */
export interface PositionedEvent {
  readonly offsetKey: string
  readonly eventJson: string
}

export interface TakenEvents {
  readonly touched: ReadonlySet<string>
  readonly failed: ReadonlyMap<string, string>
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
 * @returns the paths that they are about, and those of the user's that the sandbox cannot have, with the reason
 */
export function takeEvents(state: SyncState, events: readonly PositionedEvent[]): TakenEvents {
  const touched = new Set<string>()
  const failed = new Map<string, string>()
  const last = events.at(-1)
  if (!last) return { touched, failed }
  state.change((write) => {
    for (const { eventJson } of events) {
      // Most of a log is talk.
      if (!/"type":"(file_change|file_sync|file_sync_failed|ack)"/.test(eventJson)) continue
      const event = JSON.parse(eventJson) as RunEvent
      if (event.type === 'ack') write.acked(event.commandId)
      if (event.type === 'file_sync_failed') failed.set(pathKey(eventPath(event)), whyFailed(event))
      if (event.type !== 'file_change' && event.type !== 'file_sync') continue
      const change = changeOfEvent(event)
      const key = pathKey(changePath(change))
      if (event.type === 'file_change' && state.isPending(key)) continue
      if (event.type === 'file_sync') write.pending(event.commandId, key)
      write.remote(key, stateOfChange(change))
      touched.add(key)
    }
    write.offset(last.offsetKey)
  })
  for (const key of failed.keys()) if (!state.isPending(key)) failed.delete(key)
  return { touched, failed }
}

const whyFailed = ({ code, detail }: Extract<RunEvent, { type: 'file_sync_failed' }>) =>
  `the agent's sandbox cannot have it (${code}). ${detail}`
