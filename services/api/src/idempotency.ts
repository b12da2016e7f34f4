import { createHash } from 'node:crypto'

import { toBinary, type DescMessage, type MessageShape } from '@bufbuild/protobuf'
import type { IdempotencyCatalog } from '@tutti/store'

/** One call that may come again under its key. */
export interface KeyedCall<Desc extends DescMessage> {
  readonly owner: string
  /** Empty: the call is its own and every one counts. */
  readonly key: string
  readonly schema: Desc
  readonly request: MessageShape<Desc>
}

/**
 * The first answer under the key, or a new one. The answer is stored before anything is done, so that a call that was cut off goes
 * on with the same ids when it comes again.
 *
 * @throws TuttiError `already_exists` when the key was used with another request (names the key).
 */
export async function answerOnce<Desc extends DescMessage, Answer>(
  idempotency: IdempotencyCatalog,
  { owner, key, schema, request }: KeyedCall<Desc>,
  make: () => Answer,
  signal: AbortSignal,
): Promise<{ readonly answer: Answer; readonly repeated: boolean }> {
  if (key === '') return { answer: make(), repeated: false }
  // The type's name is part of it: one key for two methods is two requests.
  const digest = createHash('sha256')
    .update(`${schema.typeName}\0`)
    .update(toBinary(schema, request))
    .digest('hex')
  const claimed = await idempotency.claim(owner, key, digest, JSON.stringify(make()), signal)
  return { answer: JSON.parse(claimed.answer) as Answer, repeated: claimed.repeated }
}
