import { errorCodes, type ErrorCode } from '@tutti/core'
import { z } from 'zod'

/** Longer texts of a failure are cut, in characters: a path that somebody asked for may be in them. */
const maxTextChars = 4096
const maxDetails = 16

/** Codes that only the host's own parts may use: `aborted` for one would say that another worker has taken over. */
const ownCodes: readonly ErrorCode[] = ['aborted', 'unauthenticated', 'permission_denied', 'unavailable']
const codes = (Object.keys(errorCodes) as ErrorCode[]).filter((code) => !ownCodes.includes(code))

const c = z.int().positive()
const text = z.string().transform((whole) => whole.slice(0, maxTextChars))

/** What the answering end of a call may say in a header; everything else is not the protocol. */
export const answerHeader = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('msg'), c, head: z.unknown() }),
  z.strictObject({ t: z.literal('end'), c }),
  z.strictObject({ t: z.literal('credit'), c, n: z.int().positive() }),
  z.strictObject({ t: z.literal('done'), c, result: z.unknown() }),
  z.strictObject({
    t: z.literal('fail'),
    c,
    code: z.enum(codes),
    message: text,
    detail: z
      .record(z.string().max(100), z.union([text, z.number(), z.boolean()]))
      .refine((detail) => Object.keys(detail).length <= maxDetails),
  }),
])
