import { TuttiError } from '@tutti/core'
import { z } from 'zod'

const actionSchema = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('run'), command: z.string(), mayFail: z.boolean().default(false) }),
  z.strictObject({ do: z.literal('write'), path: z.string(), content: z.string() }),
  z.strictObject({ do: z.literal('edit'), path: z.string(), old: z.string(), new: z.string() }),
  z.strictObject({ do: z.literal('read'), path: z.string() }),
  /** Goes on with the script in that file of the workspace. */
  z.strictObject({ do: z.literal('script'), path: z.string() }),
  z.strictObject({ do: z.literal('ask'), question: z.string(), options: z.array(z.string()).default([]) }),
  z.strictObject({ do: z.literal('todo'), items: z.array(z.string()) }),
  z.strictObject({ do: z.literal('say'), text: z.string() }),
  z.strictObject({ do: z.literal('think'), text: z.string() }),
  z.strictObject({ do: z.literal('sleep'), seconds: z.number().nonnegative() }),
  z.strictObject({ do: z.literal('fail'), message: z.string() }),
  /** Says every user message that the conversation holds. */
  z.strictObject({ do: z.literal('echo-context') }),
])

/** One thing that the scripted brain does; docs/agents.md has the written forms. */
export type ScriptAction = z.infer<typeof actionSchema>

/** The actions that need a tool; the others only speak, wait or end. */
export type ToolAction = Extract<
  ScriptAction,
  { do: 'run' | 'write' | 'edit' | 'read' | 'script' | 'ask' | 'todo' }
>

/**
 * Reads the script in a prompt: the lines of a fenced `tutti-script` block when there is one, else a `@script:[…]` line with
 * JSON actions, else every line of the prompt that starts with one of the words (`run:`, `write:` …). Other text is ignored, so a
 * script may stand inside a task written for people. Empty when there is none.
 *
 * @throws TuttiError `invalid_argument` that names the line which cannot be read.
 */
export function parseScript(text: string): ScriptAction[] {
  const fence = /^```tutti-script[^\n]*\n([\s\S]*?)^```\s*$/m.exec(text)
  if (fence !== null) return parseLines(fence[1] ?? '')
  const json = /^@script:(.*)$/m.exec(text)
  if (json !== null) return parseJson(json[1] ?? '')
  return parseLines(text)
}

function parseJson(text: string): ScriptAction[] {
  try {
    return z.array(actionSchema).parse(JSON.parse(text))
  } catch (error) {
    throw refuse(text, error instanceof Error ? error.message : 'not JSON', error)
  }
}

function parseLines(text: string): ScriptAction[] {
  const lines = text.split(/\r?\n/)
  const actions: ScriptAction[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    const match =
      /^(run|try|write|edit|read|script|ask|todo|say|think|sleep|fail|echo-context):\s*(.*?)\s*$/.exec(line)
    if (match === null) continue
    const [, word = '', rest = ''] = match
    const here = /^(.*?)\s*<<\s*([A-Za-z_]+)$/.exec(rest)
    if (here === null || !['run', 'try', 'write', 'edit', 'say'].includes(word)) {
      actions.push(toAction(word, rest, undefined, line))
      continue
    }
    const end = lines.indexOf(here[2] ?? '', at + 1)
    if (end < 0) throw refuse(line, `its text has no end: there is no line ${here[2]}`)
    const body = lines.slice(at + 1, end).map((bodyLine) => `${bodyLine}\n`)
    actions.push(toAction(word, here[1] ?? '', body, line))
    at = end
  }
  return actions
}

function toAction(word: string, rest: string, body: string[] | undefined, line: string): ScriptAction {
  const joined = body?.join('')
  switch (word) {
    case 'run':
    case 'try':
      return { do: 'run', command: joined ?? rest, mayFail: word === 'try' }
    case 'write': {
      if (joined !== undefined) return { do: 'write', path: rest, content: joined }
      const space = rest.indexOf(' ')
      if (space < 0) return { do: 'write', path: rest, content: '' }
      return { do: 'write', path: rest.slice(0, space), content: `${rest.slice(space + 1)}\n` }
    }
    case 'edit':
      return toEdit(rest, body, line)
    case 'read':
    case 'script':
      return { do: word, path: rest }
    case 'ask': {
      const [question = '', ...options] = rest.split('|').map((part) => part.trim())
      return { do: 'ask', question, options }
    }
    case 'todo':
      return { do: 'todo', items: rest.split(';').map((item) => item.trim()) }
    case 'say':
    case 'think':
      return { do: word, text: joined ?? rest }
    case 'sleep': {
      const seconds = Number(rest)
      if (rest === '' || !(seconds >= 0)) throw refuse(line, 'it needs a number of seconds')
      return { do: 'sleep', seconds }
    }
    case 'fail':
      return { do: 'fail', message: rest }
    default:
      return { do: 'echo-context' }
  }
}

/** `edit: PATH | OLD | NEW`, or a body whose line `=======` parts the old lines from the new ones. */
function toEdit(rest: string, body: string[] | undefined, line: string): ScriptAction {
  if (body !== undefined) {
    const middle = body.indexOf('=======\n')
    if (middle < 0) throw refuse(line, 'a line ======= must part the old text from the new one')
    return {
      do: 'edit',
      path: rest,
      old: body.slice(0, middle).join(''),
      new: body.slice(middle + 1).join(''),
    }
  }
  const [path, old, replacement, ...more] = rest.split(' | ')
  if (path === undefined || old === undefined || replacement === undefined || more.length > 0) {
    throw refuse(line, 'write edit: PATH | OLD | NEW')
  }
  return { do: 'edit', path, old, new: replacement }
}

function refuse(line: string, why: string, cause?: unknown): TuttiError {
  return new TuttiError(
    'invalid_argument',
    `The script cannot be read at ${JSON.stringify(line.slice(0, 80))}: ${why}.`,
    { field: 'prompt' },
    cause,
  )
}
