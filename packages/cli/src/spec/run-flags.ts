import type { Command } from 'commander'
import { create } from '@bufbuild/protobuf'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { TuttiError, limits, strategyNames, type StrategyName } from '@tutti/core'
import { AgentSpecSchema, type EnsembleSpec } from '@tutti/proto'
import { parseCount } from '../values/count.ts'
import { parseDuration } from '../values/duration.ts'
import { collect } from './collect.ts'
import { parseAgentFlag } from './parse-agent-flag.ts'
import { pullRequestModes, type PullRequestModeName } from './pull-request-modes.ts'
import { addSandboxFlags, fillSandbox, onQuestionOf, type SandboxFlags } from './sandbox-flags.ts'
import { emptySpec, readSpecFile } from './read-spec-file.ts'

export interface RunFlags extends SandboxFlags {
  readonly file?: string
  readonly repo?: string
  readonly ref?: string
  readonly agents?: string
  readonly agent?: readonly string[]
  readonly strategy?: StrategyName
  readonly check?: string
  readonly childTimeout?: string
  readonly timeout?: string
  readonly pr?: PullRequestModeName
  readonly branch?: string
  readonly title?: string
  readonly base?: string
}

/** The flags that fill an EnsembleSpec. */
export function addRunFlags(command: Command): Command {
  command
    .option('-f, --file <file>', 'an ensemble file (YAML); flags go on top of it')
    .option(
      '--repo <path-or-url>',
      'the repository to work on: what is committed, not the uncommitted changes',
    )
    .option('--ref <ref>', 'the branch, tag or commit to start from (default: the default branch)')
    .option(
      '-n, --agents <number>',
      'how many agents work on it, 1 to 50 (default: one for each --agent, 3 without any)',
    )
    .option(
      '--agent <spec>',
      "what runs an agent: 'command:PROGRAM ARGS', 'embedded:BRAIN'; repeat to mix (default: embedded)",
      collect,
    )
    .addOption(
      command
        .createOption('--strategy <name>', 'how attempts become one (default: merge)')
        .choices(strategyNames),
    )
    .option('--check <command>', 'decides whether an attempt and the result are good: exit code 0')
    .option(
      '--child-timeout <duration>',
      'how long one turn of an agent may take, for example 45m (default: 2h)',
    )
    .option('--timeout <duration>', 'how long all of it may take, for example 1h30m (default: 1d)')
    .addOption(
      command
        .createOption('--pr <mode>', 'the pull request (default: ready)')
        .choices(Object.keys(pullRequestModes)),
    )
    .option('--branch <name>', 'the branch to deliver to')
    .option('--base <branch>', 'the branch that the pull request is against')
    .option('--title <text>', 'the title of the pull request')
  return addSandboxFlags(command)
}

export interface AskedFor {
  readonly spec: EnsembleSpec
  /** A path or URL to turn into `spec.repository`; absent when the file gave that as a message. */
  readonly repository?: string
  /** Where to start in it; empty: the default branch. */
  readonly ref: string
}

/**
 * One EnsembleSpec from file and flags; a flag goes over the file, lists are added to.
 *
 * @throws TuttiError `invalid_argument` with the flag or the place in the file.
 */
export function buildEnsembleSpec(prompt: string | undefined, flags: RunFlags, cwd: string): AskedFor {
  const file = flags.file === undefined ? emptySpec() : readSpecFile(flags.file, cwd)
  const { spec } = file
  if (prompt !== undefined) spec.prompt = prompt
  if (spec.prompt.trim() === '') {
    throw new TuttiError('invalid_argument', 'There is no prompt: say what the agents should do.', {
      field: 'prompt',
    })
  }
  if (flags.agents !== undefined) spec.count = parseCount(flags.agents, '--agents', 1, limits.maxChildren)
  if (flags.agent !== undefined) {
    spec.agents = flags.agent.map((text) => create(AgentSpecSchema, parseAgentFlag(text, '--agent')))
  }
  if (flags.strategy !== undefined) spec.strategy = flags.strategy
  if (flags.check !== undefined) spec.checkCommand = flags.check
  if (flags.setup !== undefined) spec.setupCommand = flags.setup
  if (flags.branch !== undefined) spec.branch = flags.branch
  if (flags.title !== undefined) spec.title = flags.title
  if (flags.base !== undefined) spec.baseBranch = flags.base
  if (flags.pr !== undefined) spec.pullRequest = pullRequestModes[flags.pr]
  if (flags.onQuestion !== undefined) spec.onQuestion = onQuestionOf(flags)
  const duration = (text: string, flag: string) => durationFromMs(parseDuration(text, flag))
  if (flags.childTimeout !== undefined) spec.childTimeout = duration(flags.childTimeout, '--child-timeout')
  if (flags.timeout !== undefined) spec.timeout = duration(flags.timeout, '--timeout')
  if (flags.readyTimeout !== undefined) spec.readyTimeout = duration(flags.readyTimeout, '--ready-timeout')
  if (flags.questionTimeout !== undefined)
    spec.questionTimeout = duration(flags.questionTimeout, '--question-timeout')
  spec.sandbox = fillSandbox(spec.sandbox, flags, cwd)
  if (flags.ref !== undefined && spec.repository) spec.repository.ref = flags.ref
  const repository = flags.repo ?? file.repository
  if (repository === undefined && !spec.repository) {
    throw new TuttiError('invalid_argument', 'There is no repository: give a path or URL with --repo.', {
      field: '--repo',
    })
  }
  const ref = flags.ref ?? spec.repository?.ref ?? ''
  return repository === undefined ? { spec, ref } : { spec, repository, ref }
}
