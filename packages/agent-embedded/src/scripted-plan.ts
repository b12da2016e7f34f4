import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider'
import { TuttiError } from '@tutti/core'
import { z } from 'zod'
import { isNews } from './conversation.ts'
import { parseScript, type ScriptAction, type ToolAction } from './script.ts'

/** What the scripted brain does in one model step: some words, then at most one tool call or a failure. */
export interface StepPlan {
  readonly words: readonly (
    | { readonly do: 'say' | 'think'; readonly text: string }
    | { readonly do: 'sleep'; readonly seconds: number }
  )[]
  readonly call?: { readonly toolName: string; readonly input: Readonly<Record<string, unknown>> }
  readonly failure?: string
}

/** Finds the place in the script by the tool results after the last prompt, and plans from there to the next tool call. */
export function planStep(prompt: LanguageModelV4Prompt): StepPlan {
  const users = prompt.filter((message) => message.role === 'user').map(textOf)
  const task = users.findLast((text) => !isNews(text)) ?? ''
  const results = finishedResults(prompt)
  const words: StepPlan['words'][number][] = []
  let answer = ''
  try {
    const queue = parseScript(task)
    if (queue.length === 0) {
      const text =
        'there is no script in this prompt, so nothing was done. Write lines like "run: COMMAND" or "write: PATH TEXT", or choose a brain that thinks.'
      return { words: [{ do: 'say', text }] }
    }
    let said = 0
    for (let action = queue.shift(); action !== undefined; action = queue.shift()) {
      if (!isToolAction(action)) {
        if (action.do === 'fail') return { words: words.slice(said), failure: fill(action.message, answer) }
        words.push(speak(action, users, answer))
        continue
      }
      const result = results.shift()
      if (result === undefined) return { words: words.slice(said), call: toCall(action, answer) }
      said = words.length
      const failure = failureOf(action, result)
      if (failure !== undefined) return { words: [], failure }
      if (action.do === 'ask') answer = valueOf(result).answer ?? ''
      if (action.do === 'script') queue.unshift(...parseScript(valueOf(result).content ?? ''))
    }
    return {
      words: words.slice(said).length > 0 ? words.slice(said) : [{ do: 'say', text: 'the script is done.' }],
    }
  } catch (error) {
    return { words: [], failure: TuttiError.from(error).message }
  }
}

type Speech = Extract<ScriptAction, { do: 'say' | 'think' | 'sleep' | 'echo-context' }>

function speak(action: Speech, users: readonly string[], answer: string): StepPlan['words'][number] {
  if (action.do === 'sleep') return action
  if (action.do === 'echo-context') {
    const heard = users.map((text, index) => `message ${index + 1} of ${users.length}: ${text}`).join('\n')
    return { do: 'say', text: `the conversation so far:\n${heard}` }
  }
  return { do: action.do, text: fill(action.text, answer) }
}

function toCall(action: ToolAction, answer: string): NonNullable<StepPlan['call']> {
  switch (action.do) {
    case 'run':
      return { toolName: 'shell', input: { command: fill(action.command, quote(answer)) } }
    case 'write':
      return { toolName: 'write_file', input: { path: action.path, content: fill(action.content, answer) } }
    case 'edit':
      return {
        toolName: 'edit_file',
        input: { path: action.path, old: action.old, new: fill(action.new, answer) },
      }
    case 'read':
    case 'script':
      return { toolName: 'read_file', input: { path: action.path } }
    case 'ask':
      return {
        toolName: 'ask',
        input: {
          question: action.question,
          ...(action.options.length > 0 ? { options: action.options } : {}),
        },
      }
    case 'todo':
      return { toolName: 'todo', input: { todos: action.items.map((text) => ({ text, status: 'pending' })) } }
  }
}

function isToolAction(action: ScriptAction): action is ToolAction {
  return ['run', 'write', 'edit', 'read', 'script', 'ask', 'todo'].includes(action.do)
}

function failureOf(action: ToolAction, result: LanguageModelV4ToolResultOutput): string | undefined {
  if (result.type === 'json') return undefined
  const { error, exitCode, output = '' } = valueOf(result)
  if (action.do !== 'run') return `${action.do} failed: ${error}`
  if (action.mayFail) return undefined
  const ending = error ?? `exit code ${exitCode}\n${output.slice(-1000)}`
  return `"${action.command.trim().slice(0, 200)}" failed: ${ending}`
}

/** Results of the current turn in order. One that was cut off does not count: its action is done again. */
function finishedResults(prompt: LanguageModelV4Prompt): LanguageModelV4ToolResultOutput[] {
  const lastUser = prompt.findLastIndex((message) => message.role === 'user' && !isNews(textOf(message)))
  return prompt
    .slice(lastUser + 1)
    .flatMap((message) => (message.role === 'tool' ? message.content : []))
    .flatMap((part) => (part.type === 'tool-result' ? [part.output] : []))
    .filter((output) => valueOf(output).interrupted !== true)
}

/** What the brain reads of a result; the tools make them, so what does not fit is a text of the library's about a wrong call. */
const resultSchema = z.object({
  error: z.string().optional(),
  exitCode: z.number().nullable().optional(),
  output: z.string().optional(),
  answer: z.string().optional(),
  content: z.string().optional(),
  interrupted: z.boolean().optional(),
})

function valueOf(output: LanguageModelV4ToolResultOutput): z.infer<typeof resultSchema> {
  const value = 'value' in output ? output.value : undefined
  return resultSchema.catch({ error: JSON.stringify(value) }).parse(value)
}

function textOf(message: Extract<LanguageModelV4Prompt[number], { role: 'user' }>): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function fill(text: string, answer: string): string {
  return text.replaceAll('{answer}', () => answer)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
