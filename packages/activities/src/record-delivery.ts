import type { LogId } from '@tutti/core'
import { encodeRunEvent, type DeliveryEvent } from '@tutti/protocol'
import type { DeliverResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'

export type DeliveryOutcome = DeliveryEvent extends infer Event
  ? Event extends DeliveryEvent
    ? Omit<Event, 'type' | 'requestId'>
    : never
  : never

/** Writes how a request to deliver ended into the log of its agent or ensemble; once for each request. */
export async function recordDelivery(
  deps: Pick<ActivityDeps, 'crashPoint' | 'eventLog'>,
  { log, requestId }: { readonly log: LogId; readonly requestId: string },
  outcome: DeliveryOutcome,
  signal: AbortSignal,
): Promise<DeliverResult> {
  const event = { type: 'delivery', requestId, ...outcome } as DeliveryEvent
  const once = { id: `delivery/${requestId}`, epoch: 0, sequence: 1 }
  await deps.crashPoint('deliver.record', () =>
    deps.eventLog.append(log, once, [encodeRunEvent(event)], signal),
  )
  return { outcome: event.outcome }
}
