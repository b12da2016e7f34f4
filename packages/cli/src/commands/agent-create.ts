import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { create } from '@bufbuild/protobuf'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { AgentOptionsSchema, AgentSchema, BackgroundComposerSource, type AgentOptions } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput } from '../output/output.ts'
import { parseAgentFlag } from '../spec/parse-agent-flag.ts'
import { repositorySource } from '../spec/repository-source.ts'
import { addSandboxFlags, fillSandbox, onQuestionOf, type SandboxFlags } from '../spec/sandbox-flags.ts'
import { parseDuration } from '../values/duration.ts'

interface CreateFlags extends SandboxFlags {
  readonly repo: string
  readonly ref?: string
  readonly agent?: string
  readonly title?: string
  readonly turnTimeout?: string
  readonly idempotencyKey?: string
}

/** `tutti agent create`: one agent on its own. */
export function addAgentCreate(agent: Command, cli: Cli): void {
  const command = agent
    .command('create <prompt>')
    .description('start one agent and print its id; it goes on after this command has ended')
    .requiredOption(
      '--repo <path-or-url>',
      'the repository to work on: what is committed, not the uncommitted changes',
    )
    .option('--ref <ref>', 'the branch, tag or commit to start from (default: the default branch)')
    .option('--agent <spec>', "what runs it: 'command:PROGRAM ARGS' or 'embedded:BRAIN'")
    .option('--title <text>', 'one line (default: made from the prompt)')
    .option('--turn-timeout <duration>', 'how long one turn may take, for example 45m (default: 2h)')
    .option('--idempotency-key <key>', 'the same key starts the agent only once')
  addSandboxFlags(command)
    .addHelpText(
      'after',
      examples(
        `tutti agent create "document the API" --repo . --agent 'command:claude -p {prompt}' --allow-host api.anthropic.com`,
        'tutti agent create - --repo . --agent embedded:scripted < prompt.md',
      ),
    )
    .action(
      cli.action<[string], CreateFlags>(async (context, given, flags) => {
        const { output, signal, deps } = context
        const prompt = given === '-' ? await deps.readStdin() : given
        const options = agentOptions(flags, deps.cwd)
        const client = await context.connect()
        const repository = await repositorySource(client, flags.repo, flags.ref ?? '', deps.cwd, signal)
        const { agent: created } = await client.agents.createAgent(
          {
            prompt,
            repository,
            options,
            idempotencyKey: flags.idempotencyKey ?? randomUUID(),
            source: BackgroundComposerSource.CLI,
          },
          { signal },
        )
        if (!isTextOutput(output)) return output.json(messageJson(AgentSchema, created!))
        output.line(created!.bcId)
        output.say(`Follow it: tutti agent events ${created!.bcId} --follow`)
      }),
    )
}

function agentOptions(flags: CreateFlags, cwd: string): AgentOptions {
  const duration = (text: string | undefined, flag: string) =>
    text === undefined ? undefined : durationFromMs(parseDuration(text, flag))
  const turnTimeout = duration(flags.turnTimeout, '--turn-timeout')
  const readyTimeout = duration(flags.readyTimeout, '--ready-timeout')
  const questionTimeout = duration(flags.questionTimeout, '--question-timeout')
  return create(AgentOptionsSchema, {
    ...(flags.agent === undefined ? {} : { agent: parseAgentFlag(flags.agent, '--agent') }),
    ...(turnTimeout && { turnTimeout }),
    ...(readyTimeout && { readyTimeout }),
    ...(questionTimeout && { questionTimeout }),
    setupCommand: flags.setup ?? '',
    title: flags.title ?? '',
    onQuestion: onQuestionOf(flags),
    sandbox: fillSandbox(undefined, flags, cwd),
  })
}
