import { decodeOffset, encodeOffset } from '@tutti/protocol'
import { recoverWorkspace, type RecoveredWorkspace } from '@tutti/workspace/log'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'

/** What a new sandbox shall have. */
export interface WantedWorkspace {
  /** What the log ends with. */
  readonly now: RecoveredWorkspace
  /** The position of the log's end. */
  readonly last: number
  /** Up to where the log is archived. */
  readonly archived: number
  /** The files and the repository are those of then, if somebody asked for that; what the agent knows and left open is of now. */
  readonly wanted: RecoveredWorkspace
  /** The log position that is to be put back, and who asked for it; undefined: the newest workspace is wanted. */
  readonly putBack: { readonly at: number; readonly requestId: string } | undefined
  /** The offset that somebody had put back, or has now, and that the agent has not been told of for certain. */
  readonly told: string | undefined
  /** How long the log was read, in milliseconds. */
  readonly ms: number
}

/**
 * Call it when nobody else can write the log as a sandbox any more.
 *
 * @param passedOver checkpoints that cannot be had
 */
export async function wantedWorkspace(
  { eventLog, clock }: Pick<ActivityDeps, 'eventLog' | 'clock'>,
  { bcId, recovery }: Pick<Parameters<Activities['provisionSandbox']>[0], 'bcId' | 'recovery'>,
  signal: AbortSignal,
  passedOver?: ReadonlySet<string>,
): Promise<WantedWorkspace> {
  const since = clock.monotonic()
  const { last, archived } = await eventLog.head(bcId, signal)
  const now = await recoverWorkspace(eventLog, bcId, signal, last, passedOver)
  const putBack = putBackOf(now)
  const then =
    putBack === undefined ? now : await recoverWorkspace(eventLog, bcId, signal, putBack.at, passedOver)
  const { exported, openCalls, before, pending, synced } = now
  return {
    now,
    last,
    archived,
    // What the user has changed and no sandbox has got is newer than all of it.
    wanted: { ...then, exported, openCalls, before, pending, synced },
    putBack,
    told: putBack === undefined ? now.restored?.atOffset : encodeOffset(bcId, putBack.at),
    ms: Math.round(clock.monotonic() - since),
  }

  function putBackOf({ restored, restoring }: RecoveredWorkspace): WantedWorkspace['putBack'] {
    // A run that was cut off after it had put the workspace back does not do it twice.
    if (recovery?.at !== undefined && (restoring || restored?.requestId !== recovery.requestId))
      return { at: recovery.at, requestId: recovery.requestId }
    // One that was cut off within goes on, whatever the new sandbox is for: half of an earlier workspace is none.
    return restoring && { at: decodeOffset(bcId, restoring.atOffset), requestId: restoring.requestId }
  }
}
