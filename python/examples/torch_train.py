#!/usr/bin/env python3
# torch_train.py - elastic training with torch's DistributedDataParallel.
"""pccl-master -n 3 --respawn python torch_train.py [STEPS]

Fits a small network to a function. Kill a rank (kill -9) whenever you like:
the others go on, and the new process that pccl-master starts in its place gets
the parameters, the optimizer's state and the number of the step.
"""
import sys

import torch
import torch.distributed as dist

import pccl.torch


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(),
                              torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    # Join last: the members wait for a newcomer from now on.
    dist.init_process_group("pccl")
    model = pccl.torch.DistributedDataParallel(net, optimizer)
    data = torch.Generator()
    while model.step < steps:
        if model.update():
            print(f"step {model.step}: rank {dist.get_rank()} of "
                  f"{dist.get_world_size()}", flush=True)
        data.manual_seed(model.step * 4096 + dist.get_rank())
        x = torch.rand(256, 2, generator=data) * 2 - 1
        y = torch.sin(3 * x[:, :1]) * x[:, 1:]
        optimizer.zero_grad()
        error = torch.nn.functional.mse_loss(model(x), y)
        error.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"{steps} steps, error {error.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
