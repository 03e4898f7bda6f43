"""ReFrame's description of a cluster: copy it, and set partitions, access and GPUs of a node."""

_GPUS = 8

site_configuration = {
    "systems": [
        {
            "name": "cluster",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "gpu",
                    "scheduler": "squeue",  # slurm, where accounting runs
                    "launcher": "srun",
                    "access": ["--exclusive", "--partition=gpu"],
                    "resources": [{"name": "gpus", "options": ["--gres=gpu:{n}"]}],
                    "environs": ["builtin"],
                    "extras": {"gpus": _GPUS},
                },
                {
                    "name": "host",  # this one, without a scheduler
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin"],
                    "extras": {"gpus": _GPUS},
                },
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
}
