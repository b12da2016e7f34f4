import { createContextKey, type HandlerContext } from '@connectrpc/connect'
import { TuttiError } from '@tutti/core'

import type { Caller } from './request-guard.ts'

/** Set by the transport before a handler runs. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'who calls' })
/** Why the request message cannot be read; thrown before anything else happens. */
export const problemKey = createContextKey<TuttiError | undefined>(undefined, {
  description: 'unreadable request',
})

/** Who calls. @throws TuttiError `unauthenticated` when the transport let nobody in. */
export function callerOf(context: Pick<HandlerContext, 'values'>): Caller {
  const caller = context.values.get(callerKey)
  if (!caller) throw new TuttiError('unauthenticated', 'A key is needed.')
  return caller
}
