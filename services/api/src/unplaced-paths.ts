import type { AgentId } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import { changePath, pathKey } from '@tutti/workspace'
import { eventPath, recoverWorkspace } from '@tutti/workspace/log'

import { followLog } from './follow-log.ts'
import type { HandlerDeps } from './handler.ts'

export type Unplaced = Extract<RunEvent, { type: 'file_sync_failed' }>

/** The rest of the log is not decoded for it. */
const recordTypes: ReadonlySet<string> = new Set(['ack', 'file_sync_failed', 'sandbox'])

/**
 * What the user had changed when a sandbox was ready, and it could not have. Each of those changes is tried then, so the log is read until it
 * has said of all of them how that went, or until this sandbox is no more.
 *
 * @param request.from position at which the sandbox was ready
 * @param request.until where to end at the latest
 */
export async function unplacedPaths(
  { eventLog, reads, recordViews, config }: HandlerDeps,
  { bcId, from, until }: { readonly bcId: AgentId; readonly from: number; readonly until: number },
  signal: AbortSignal,
): Promise<readonly Unplaced[]> {
  const { pending } = await recoverWorkspace(eventLog, bcId, signal, from)
  const keyOf = new Map(pending.map(({ commandId, change }) => [commandId, pathKey(changePath(change))]))
  // Of a path the newest change alone is tried. A still newer one may come meanwhile, and is told of in its place.
  const newest = new Map([...keyOf].map(([commandId, key]) => [key, commandId]))
  const isOlder = (commandId: string) => newest.get(keyOf.get(commandId) ?? '') !== commandId
  const unplaced: Unplaced[] = []
  if (newest.size === 0) return unplaced
  for await (const look of followLog(reads, bcId, from, config['stream.heartbeat'], signal)) {
    for (const record of look.records) {
      if (!recordTypes.has(record.type)) continue
      const { event } = recordViews.of(bcId, record)
      if (event.type === 'sandbox') return unplaced
      if (event.type !== 'ack' && event.type !== 'file_sync_failed') continue
      if (keyOf.has(event.commandId) && isOlder(event.commandId)) continue
      const key = event.type === 'ack' ? keyOf.get(event.commandId) : pathKey(eventPath(event))
      const isOne = key !== undefined && newest.delete(key)
      if (isOne && event.type === 'file_sync_failed') unplaced.push(event)
    }
    if (newest.size === 0 || look.closed || look.position >= until) return unplaced
  }
  return unplaced
}
