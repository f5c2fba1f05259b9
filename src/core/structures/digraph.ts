/**
 * Directed graphs in compressed rows: the nodes are 0, 1, …, and node `n` has edges to `to[first[n]]` up to, not including,
 * `to[first[n + 1]]`. Everything here is linear in nodes and edges, and keeps stacks of its own: a chain of 100 000 nodes is
 * as deep as it is long.
 */
export interface Digraph {
  readonly nodes: number;
  readonly first: Int32Array;
  readonly to: Int32Array;
}

/** The graph of the edges `from[i]` → `to[i]`; the edges of a node are in the order given. */
export function digraph(nodes: number, from: ArrayLike<number>, to: ArrayLike<number>): Digraph {
  const first = new Int32Array(nodes + 1);
  for (let i = 0; i < from.length; i++) first[(from[i] as number) + 1]!++;
  for (let n = 0; n < nodes; n++) first[n + 1]! += first[n] as number;
  const next = first.slice();
  const sorted = new Int32Array(from.length);
  for (let i = 0; i < from.length; i++) sorted[next[from[i] as number]!++] = to[i] as number;
  return { nodes, first, to: sorted };
}

/** Kahn's algorithm: each node before those that it has edges to. Nodes on circles, and those behind them, are left out. */
export function topologicalOrder({ nodes, first, to }: Digraph): Int32Array {
  const open = new Int32Array(nodes);
  for (const target of to) open[target]!++;
  const order = new Int32Array(nodes);
  let length = 0;
  for (let n = 0; n < nodes; n++) if (open[n] === 0) order[length++] = n;
  for (let done = 0; done < length; done++) {
    const node = order[done] as number;
    for (let e = first[node] as number; e < (first[node + 1] as number); e++) {
      const target = to[e] as number;
      if (--open[target]! === 0) order[length++] = target;
    }
  }
  return order.subarray(0, length);
}

/**
 * The strongly connected components in which there is a circle: several nodes, or one with an edge to itself. Nodes of a
 * component ascend, components are in the order of their first nodes.
 */
export function circles(graph: Digraph): number[][] {
  const ordered = topologicalOrder(graph);
  if (ordered.length === graph.nodes) return [];
  const passed = new Uint8Array(graph.nodes);
  for (const node of ordered) passed[node] = 1;
  return components(graph, passed)
    .filter((nodes) => nodes.length > 1 || hasEdge(graph, nodes[0] as number, nodes[0] as number))
    .map((nodes) => nodes.sort((a, b) => a - b))
    .sort((a, b) => (a[0] as number) - (b[0] as number));
}

function hasEdge({ first, to }: Digraph, from: number, target: number): boolean {
  return to.subarray(first[from], first[from + 1]).includes(target);
}

/** Tarjan's algorithm over the nodes that are not passed over. */
function components({ nodes, first, to }: Digraph, passed: Uint8Array): number[][] {
  const found: number[][] = [];
  /** When a node was reached, from 1; `low`: the earliest still open one that it leads back to. */
  const reached = new Int32Array(nodes);
  const low = new Int32Array(nodes);
  const nextEdge = first.slice(0, nodes);
  const open = new Uint8Array(nodes);
  const stack: number[] = [];
  const path: number[] = [];
  let clock = 0;
  const enter = (node: number): void => {
    reached[node] = low[node] = ++clock;
    open[node] = 1;
    stack.push(node);
    path.push(node);
  };
  for (let root = 0; root < nodes; root++) {
    if (passed[root] === 1 || reached[root] !== 0) continue;
    enter(root);
    while (path.length > 0) {
      const node = path[path.length - 1] as number;
      const edge = nextEdge[node] as number;
      if (edge < (first[node + 1] as number)) {
        nextEdge[node] = edge + 1;
        const target = to[edge] as number;
        if (passed[target] === 1) continue;
        if (reached[target] === 0) enter(target);
        else if (open[target] === 1) low[node] = Math.min(low[node] as number, reached[target] as number);
        continue;
      }
      path.pop();
      const above = path[path.length - 1];
      if (above !== undefined) low[above] = Math.min(low[above] as number, low[node] as number);
      if (low[node] !== reached[node]) continue;
      const component = stack.splice(stack.lastIndexOf(node));
      for (const member of component) open[member] = 0;
      found.push(component);
    }
  }
  return found;
}
