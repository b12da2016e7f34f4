import { join } from 'node:path'
import { noCrashPoints, parseCrashOrder, TuttiError, type CrashPoint } from '@tutti/core'

/**
 * What `TUTTI_CRASH_AT` asks for; dies once per order and `folder`.
 *
 * @throws TuttiError `invalid_argument` for an order that is none.
 */
export async function crashPointOf(
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): Promise<CrashPoint> {
  const text = env['TUTTI_CRASH_AT'] ?? ''
  if (text === '') return noCrashPoints
  const order = parseCrashOrder(text)
  if (!order)
    throw new TuttiError(
      'invalid_argument',
      `TUTTI_CRASH_AT is ${JSON.stringify(text)}. Write NAME:before or NAME:after, with a name of "tutti admin crash-points".`,
      { field: 'TUTTI_CRASH_AT' },
    )
  // With it comes a database that a client does not need.
  const { createCrashPoints } = await import('@tutti/store')
  return createCrashPoints({ order, stampDir: join(folder, 'crashed') })
}
