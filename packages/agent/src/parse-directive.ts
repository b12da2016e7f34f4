import { hasDeceptive } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { z, type ZodType } from 'zod'

export type Directive = Extract<
  TaskEvent,
  { type: 'text_delta' | 'thinking_delta' | 'token_delta' | 'agent_question' }
>

/** What the wire carries (int32). */
const maxTokens = 2 ** 31 - 1
/** In characters: what a person reads at once, and one event of the log holds. */
const maxIdChars = 200
const maxQuestionChars = 8192
const maxOptions = 20
const maxOptionChars = 200

/** What an agent says is kept as it is, as its output is; who shows it takes the controls out. */
const words = z
  .string()
  .min(1)
  .refine((whole) => whole.isWellFormed())

/** A person answers it, and programs read it back: of the controls only tab, line feed and carriage return. */
const control = /(?![\t\n\r])\p{Cc}/u
const text = words.refine((whole) => !control.test(whole))
/** On one line, and nothing in it that looks like something else. */
const id = words.max(maxIdChars).refine((whole) => !hasDeceptive(whole))
const option = z.union([z.string(), z.number()]).transform(String).pipe(text.max(maxOptionChars))

const schema: ZodType<Directive> = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text_delta'), text: words }),
  z.object({ type: z.literal('thinking_delta'), text: words }),
  z.object({ type: z.literal('token_delta'), tokens: z.int().nonnegative().max(maxTokens) }),
  z
    .object({
      type: z.literal('agent_question'),
      questionId: id,
      text: text.max(maxQuestionChars).refine((whole) => whole.trim() !== ''),
      options: z.array(option).min(1).max(maxOptions).nullish(),
      default: text.max(maxQuestionChars).nullish(),
    })
    .transform(({ options, default: preset, ...question }) => ({
      ...question,
      ...(options ? { options } : {}),
      ...(preset === undefined || preset === null ? {} : { default: preset }),
    })),
])

/** The event in the JSON of a directive, with the fields of that event alone; undefined when it is none. docs/agents.md has the fields. */
export function parseDirective(json: string): Directive | undefined {
  try {
    return schema.safeParse(JSON.parse(json)).data
  } catch {
    return undefined
  }
}
